// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * FI_FABREX_* in the environment, and the provider's name for libfabric, under
 * which it also finds the settings and sorts the log. Read by provider.c; what
 * they mean: fi_fabrex(7).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

/* provider.c fills in the functions. */
struct fi_provider provider = {
	.version = FI_VERSION(FABREX_VERSION_MAJOR, FABREX_VERSION_MINOR),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "fabrex",
};

struct settings settings = {
	.cells = 1024,
	.cell_size = 4096,
	.unexpected = 16 << 20,
	.tx_size = 512,
	.rx_size = 1024,
	.resolve_ms = 10000,
	.copy = 16 << 10,
};

static const struct setting {
	const char *name;
	size_t *value;
	size_t min, max;
	bool power;		/* of two */
	const char *help;
} numbers[] = {
	{ "cells", &settings.cells, 64, 1 << 16, true,
	  "Receive cells of an endpoint, a power of two: what can be on its way to it, in messages" },
	{ "cell_size", &settings.cell_size, 256, FABREX_CELL_MAX, true,
	  "Bytes of a receive cell, a power of two: longer messages are fetched by the receiver" },
	{ "unexpected", &settings.unexpected, 1 << 16, (size_t)1 << 40, false,
	  "Bytes of messages kept for each peer until a receive is posted; beyond that the peer has to wait" },
	{ "tx_size", &settings.tx_size, 8, TX_SIZE_MAX, false,
	  "Operations that an endpoint can have outstanding" },
	{ "rx_size", &settings.rx_size, 8, RX_SIZE_MAX, false,
	  "Receives that can be posted" },
	{ "resolve_ms", &settings.resolve_ms, 0, 1 << 30, false,
	  "Milliseconds until a peer that is not there is given up" },
	{ "copy", &settings.copy, 0, 128 << 10, false,
	  "Over loopback: messages up to this many bytes are copied twice rather than fetched from the sender's memory" },
};
#define NUMBERS		(sizeof(numbers) / sizeof(*numbers))

/* Digits, and perhaps K, M or G. */
static bool number(const char *text, size_t *value)
{
	static const char suffixes[] = "KMG";
	unsigned long long v;
	const char *suffix;
	unsigned int shift = 0;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno)
		return false;
	suffix = *end ? strchr(suffixes, *end & ~0x20) : NULL;
	if (suffix) {
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		end++;
	}
	if (*end || v > SIZE_MAX >> shift)
		return false;
	*value = (size_t)v << shift;
	return true;
}

/* The variable's name, as libfabric makes it. */
static const char *variable(const char *name, char text[64])
{
	size_t i = (size_t)snprintf(text, 64, "FI_FABREX_%s", name);

	while (i--)
		if (text[i] >= 'a' && text[i] <= 'z')
			text[i] ^= 0x20;
	return text;
}

static int take_number(const struct setting *setting)
{
	char *text = NULL, name[64];
	size_t v;

	if (fi_param_get_str(&provider, setting->name, &text) || !text)
		return 0;
	if (number(text, &v) && v >= setting->min && v <= setting->max &&
	    (!setting->power || !(v & (v - 1)))) {
		*setting->value = v;
		return 0;
	}
	WARN(FI_LOG_CORE,
	     "%s=%s: give %s from %zu to %zu, or unset it\n",
	     variable(setting->name, name), text,
	     setting->power ? "a power of two" : "a number", setting->min,
	     setting->max);
	return -FI_EINVAL;
}

static int take_rendezvous(void)
{
	char *text = NULL;

	if (fi_param_get_str(&provider, "rendezvous", &text) || !text)
		return 0;
	settings.rendezvous_write = !strcmp(text, "write");
	if (settings.rendezvous_write || !strcmp(text, "read"))
		return 0;
	WARN(FI_LOG_CORE,
	     "FI_FABREX_RENDEZVOUS=%s: give read or write, or unset it\n",
	     text);
	return -FI_EINVAL;
}

int settings_read(void)
{
	int ret = 0, error;
	size_t i;

	for (i = 0; i < NUMBERS; i++) {
		fi_param_define(&provider, numbers[i].name, FI_PARAM_STRING,
				"%s (default: %zu)", numbers[i].help,
				*numbers[i].value);
		error = take_number(&numbers[i]);
		ret = ret ? ret : error;
	}
	fi_param_define(&provider, "rendezvous", FI_PARAM_STRING,
			"Who moves a long message: read, the receiver fetches it; write, the sender stores it (default: read)");
	error = take_rendezvous();
	return ret ? ret : error;
}
