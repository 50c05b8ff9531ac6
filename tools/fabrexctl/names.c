// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words for numbers, and the nearest word to a mistyped one.
 * The order of the tables is that of the enums in docs/netlink/fabrex.yaml.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "names.h"

static const char *const types[] = { "object", "switch", "port", "host",
				     "appliance", "endpoint", NULL };
static const char *const port_kinds[] = { "unused", "host", "uplink", "isl",
					  NULL };
static const char *const endpoint_kinds[] = { "?", "gpu", "nvme", "nic",
					      "fpga", NULL };
static const char *const appliance_kinds[] = { "?", "cascade", "flat", NULL };
static const char *const link_states[] = { "down", "up", "disabled", NULL };
static const char *const host_states[] = { "down", "up", NULL };
static const char *const endpoint_states[] = { "free", "binding", "bound",
					       "releasing", "gone",
					       "attaching", NULL };
static const char *const events[] = { "?", "link", "peer-up", "peer-down",
				      "endpoint", "release-request", "reset",
				      "port-added", "port-removed", "lost",
				      "fault", NULL };
static const char *const actions[] = { "?", "enable", "disable", "reset",
				       NULL };
static const char *const protections[] = { "?", "iommu", "trust", NULL };
static const char *const nothing[] = { NULL };

static const char *word_at(const char *const *words, uint32_t n)
{
	uint32_t i;

	for (i = 0; words[i]; i++)
		if (i == n)
			return words[i];
	return "unknown";
}

static int word_index(const char *const *words, const char *word)
{
	int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(words[i], word) && strcmp(word, "?"))
			return i;
	return -1;
}

const char *type_name(uint32_t type)
{
	return word_at(types, type);
}

const char *article(const char *word)
{
	return strchr("aeiou", word[0]) ? "an" : "a";
}

void types_text(unsigned int mask, char *buf, size_t len)
{
	size_t n = 0;
	uint32_t t;

	buf[0] = '\0';
	for (t = T_SWITCH; t < T_MAX && n < len && mask != T_ANY; t++)
		if (mask & T_BIT(t))
			n += snprintf(buf + n, len - n, "%s%s",
				      n ? " or " : "", types[t]);
	if (!n)
		snprintf(buf, len, "object");
}

const char *const *kind_words(uint32_t type)
{
	switch (type) {
	case T_PORT:
		return port_kinds;
	case T_APPLIANCE:
		return appliance_kinds;
	case T_ENDPOINT:
		return endpoint_kinds;
	}
	return nothing;
}

const char *const *state_words(uint32_t type)
{
	switch (type) {
	case T_PORT:
		return link_states;
	case T_HOST:
		return host_states;
	case T_ENDPOINT:
		return endpoint_states;
	}
	return nothing;
}

const char *const *event_words(void)
{
	return events + 1;
}

const char *const *action_words(void)
{
	return actions + 1;
}

const char *kind_name(uint32_t type, uint32_t kind)
{
	return word_at(kind_words(type), kind);
}

const char *state_name(uint32_t type, uint32_t state)
{
	return word_at(state_words(type), state);
}

const char *event_name(uint32_t type)
{
	return word_at(events, type);
}

const char *action_name(uint32_t action)
{
	return word_at(actions, action);
}

const char *protection_name(uint32_t protection)
{
	return word_at(protections, protection);
}

static uint32_t positive(int n)
{
	return n > 0 ? n : 0;
}

uint32_t endpoint_kind(const char *word)
{
	return positive(word_index(endpoint_kinds, word));
}

uint32_t event_type(const char *word)
{
	return positive(word_index(events, word));
}

uint32_t port_action(const char *word)
{
	return positive(word_index(actions, word));
}

static unsigned int min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

unsigned int name_distance(const char *a, const char *b)
{
	unsigned int d[3][64] = { 0 };
	size_t na = strlen(a), nb = strlen(b), i, j;

	if (na > 63 || nb > 63)
		return na > nb ? na : nb;
	for (j = 0; j <= nb; j++)
		d[0][j] = j;
	for (i = 1; i <= na; i++) {
		unsigned int *row = d[i % 3], *up = d[(i + 2) % 3];
		unsigned int *up2 = d[(i + 1) % 3];

		row[0] = i;
		for (j = 1; j <= nb; j++) {
			row[j] = min3(up[j] + 1, row[j - 1] + 1,
				      up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && up2[j - 2] + 1 < row[j])
				row[j] = up2[j - 2] + 1;
		}
	}
	return d[na % 3][nb];
}

const char *nearest_word(const char *const *words, const char *word)
{
	unsigned int best = strlen(word) / 3 + 1, d;
	const char *found = NULL;

	for (; *words; words++) {
		d = name_distance(word, *words);
		if (d <= best && (!found || d < best)) {
			best = d;
			found = *words;
		}
	}
	return found;
}
