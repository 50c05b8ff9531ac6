/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small helpers of all files in lib/plan: arrays that grow, words of enums. */
#ifndef LIB_PLAN_UTIL_H
#define LIB_PLAN_UTIL_H

#include <stddef.h>
#include <stdint.h>

/*
 * Room for @more elements of @size bytes on top of @n in *@array, which has room
 * for *@room. -ENOMEM: nothing has changed.
 */
int plan_grow(void *array, uint64_t n, uint64_t more, uint64_t *room,
	      size_t size);
/*
 * Which of @words, from 1 to before @n, is @word, in which "_" may stand for "-".
 * 0: none.
 */
int plan_word_parse(const char *const *words, int n, const char *word);

#endif
