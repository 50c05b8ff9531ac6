/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words for numbers: types, kinds, states, events, and how far apart two
 * words are. Called by renderers, parsers and completion.
 */
#ifndef CTL_NAMES_H
#define CTL_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct object;

const char *type_name(uint32_t type);
/* "host or port" for a mask of T_BIT(). */
void types_text(unsigned int types, char *buf, size_t len);
/* "a" or "an" */
const char *article(const char *word);
const char *kind_name(uint32_t type, uint32_t kind);
const char *state_name(uint32_t type, uint32_t state);
const char *event_name(uint32_t type);
const char *action_name(uint32_t action);
const char *protection_name(uint32_t protection);

/* Number of a word, or 0. */
uint32_t endpoint_kind(const char *word);
uint32_t event_type(const char *word);
uint32_t port_action(const char *word);

/* Whether @word is a kind or state of anything at all. */
const char *const *kind_words(uint32_t type);
const char *const *state_words(uint32_t type);
const char *const *event_words(void);
const char *const *action_words(void);

/* Insertions, deletions, changes and swaps that make @b of @a. */
unsigned int name_distance(const char *a, const char *b);
/* The word of a NULL-terminated list most like @word, or NULL. */
const char *nearest_word(const char *const *words, const char *word);

#endif
