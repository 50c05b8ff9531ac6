// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random mutations of schedules: other numbers, paths that change places, are
 * left out or doubled, pieces of text swapped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mutate.h"

#define SPOTS	8192u

static uint64_t state = 1;

uint64_t mutate_time(void)
{
	const char *text = getenv("FABREX_FUZZ_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) :
			(uint64_t)time(NULL) * 0x9e3779b97f4a7c15u | 1;

	printf("# FABREX_FUZZ_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

void mutate_seed(uint64_t seed)
{
	state = seed;
}

uint32_t mutate_draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 11) % n;
}

/* Numbers, and words that begin with one, of the part with transfers. */
struct spot {
	size_t at, length;
};

static uint32_t find_spots(const char *text, const char *of, struct spot *spots,
			   uint32_t most)
{
	const char *at = strstr(text, "\n\n");
	uint32_t n = 0;

	while (at && *at && n < most) {
		size_t length = strspn(at, of);

		if (length) {
			spots[n].at = (size_t)(at - text);
			spots[n++].length = length;
		}
		at += length ? length : 1;
	}
	return n;
}

static void replace(char *text, struct spot spot, const char *by)
{
	static char rest[MUTATE_ROOM];
	size_t at = spot.at + spot.length;

	if (strlen(text) + strlen(by) >= MUTATE_ROOM)
		return;
	strcpy(rest, text + at);
	strcpy(text + spot.at, by);
	strcat(text + spot.at, rest);
}

static void swap(char *text, struct spot a, struct spot b)
{
	char first[128], second[128];

	if (a.at > b.at || a.length > 100 || b.length > 100)
		return;
	snprintf(first, sizeof(first), "%.*s", (int)a.length, text + a.at);
	snprintf(second, sizeof(second), "%.*s", (int)b.length, text + b.at);
	replace(text, b, first);
	replace(text, a, second);
}

void mutate(char *text, uint32_t ranks)
{
	static struct spot spots[SPOTS];
	static const char digits[] = "0123456789";
	static const char paths[] = "0123456789>[]";
	static const char lines[] = "0123456789>[] acdeopruy";
	uint32_t how = mutate_draw(6), n;
	char by[160];

	n = find_spots(text, how < 2 ? digits : how < 5 ? paths : lines, spots,
		       SPOTS);
	if (!n)
		return;
	switch (how) {
	case 0:
		snprintf(by, sizeof(by), "%u", mutate_draw(ranks));
		replace(text, spots[mutate_draw(n)], by);
		break;
	case 1:
	case 2:
	case 5:
		swap(text, spots[mutate_draw(n)], spots[mutate_draw(n)]);
		break;
	case 3:
		replace(text, spots[mutate_draw(n)], "");
		break;
	case 4:
		n = mutate_draw(n);
		if (spots[n].length > 60)
			return;
		snprintf(by, sizeof(by), "%.*s %.*s", (int)spots[n].length,
			 text + spots[n].at, (int)spots[n].length,
			 text + spots[n].at);
		replace(text, spots[n], by);
		break;
	}
}

