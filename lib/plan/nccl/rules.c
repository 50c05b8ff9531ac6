// SPDX-License-Identifier: LGPL-2.1-or-later
/* Words and numbers that the libraries know; see nccl/rules.h. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/rules.h"

static const struct nccl_limits limits[] = {
	[PLAN_NCCL] = { 1, 256, 640, 640, 64, 65536, "nvlink" },
	[PLAN_RCCL] = { 2, 8192, 512, 64, 128, 8192, "xgmi" },
};

const struct nccl_limits *nccl_limits(enum plan_dialect d)
{
	return &limits[d];
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

enum nccl_class nccl_class(enum plan_dialect d, const char *text)
{
	if (starts(text, "0x060400"))
		return NCCL_CLASS_BRIDGE;
	if (d == PLAN_NCCL && starts(text, "0x080100"))
		return NCCL_CLASS_BRIDGE;	/* direct path of a NIC */
	if (starts(text, "0x068000"))
		return NCCL_CLASS_NVSWITCH;
	if (starts(text, "0x068001"))
		return NCCL_CLASS_CPU;
	if (starts(text, "0x03"))
		return NCCL_CLASS_GPU;
	if (starts(text, "0x02"))
		return NCCL_CLASS_NIC;
	if (d == PLAN_RCCL && starts(text, "0x120000"))
		return NCCL_CLASS_GPU;	/* what an MI300X calls itself */
	return NCCL_CLASS_UNKNOWN;
}

/* @digits or more hex digits, at most @most; their value, and what follows. */
static bool hex(const char **text, unsigned int digits, unsigned int most,
		uint64_t *value)
{
	unsigned int n = 0;

	*value = 0;
	while (n < most && isxdigit((unsigned char)**text)) {
		int c = tolower((unsigned char)*(*text)++);

		*value = *value << 4 |
			 (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
		n++;
	}
	return n >= digits;
}

uint64_t nccl_busid(const char *text)
{
	uint64_t domain, bus, device, function;

	if (!hex(&text, 4, 8, &domain) || *text++ != ':' ||
	    !hex(&text, 2, 2, &bus) || *text++ != ':' ||
	    !hex(&text, 2, 2, &device) || *text++ != '.' ||
	    !hex(&text, 1, 1, &function) || *text || device > 0x1f ||
	    function > 7)
		return NCCL_NO_BUSID;
	return domain << 20 | bus << 12 | device << 4 | function;
}

void nccl_busid_print(uint64_t id, char *text, size_t size)
{
	snprintf(text, size, "%04llx:%02x:%02x.%x",
		 (unsigned long long)(id >> 20), (unsigned int)(id >> 12) & 0xff,
		 (unsigned int)(id >> 4) & 0xff, (unsigned int)id & 0xf);
}

bool nccl_busid_strict(const char *text)
{
	uint64_t id = nccl_busid(text);
	char same[32];

	if (id == NCCL_NO_BUSID)
		return false;
	nccl_busid_print(id, same, sizeof(same));
	return !strcmp(text, same);
}

bool nccl_int(const char *text, int64_t *out)
{
	char *end;
	long value;

	if (!*text || isspace((unsigned char)*text))
		return false;
	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || *end || value < INT32_MIN || value > INT32_MAX)
		return false;
	*out = value;
	return true;
}

bool nccl_float(const char *text, double *out)
{
	char *end;

	if (!*text || isspace((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtod(text, &end);
	return !errno && !*end && isfinite(*out);
}

uint32_t nccl_nvlink_bw(int64_t sm)
{
	if (sm >= 100)
		return 40100;
	if (sm >= 90)
		return 20600;
	if (sm == 86)
		return 12000;
	if (sm >= 70 || sm < 60)
		return 20000;
	return 18000;
}

uint32_t nccl_xgmi_bw(const char *gcn)
{
	if (starts(gcn, "gfx90a") || !strcmp(gcn, "910"))
		return 36000;
	if (starts(gcn, "gfx94") || starts(gcn, "gfx95") ||
	    !strcmp(gcn, "940") || !strcmp(gcn, "941") || !strcmp(gcn, "942"))
		return 48000;
	return 24000;
}

static uint32_t intel_bw(int64_t family, int64_t model)
{
	if (family != 6 || model < 0x55)
		return 6000;
	if (model >= 0xcf)
		return 40000;
	return model >= 0x8f ? 22000 : 10000;
}

uint32_t nccl_cpu_bw(const char *arch, const char *vendor, int64_t family,
		     int64_t model)
{
	if (!arch)
		return NCCL_LOC_BW;
	if (starts(arch, "ppc64"))
		return 32000;
	if (starts(arch, "arm64"))
		return 6000;
	if (!vendor || !starts(arch, "x86_64"))
		return NCCL_LOC_BW;
	if (starts(vendor, "GenuineIntel"))
		return intel_bw(family, model);
	if (starts(vendor, "AuthenticAMD"))
		return 16000;
	if (starts(vendor, "CentaurHauls") || starts(vendor, "  Shanghai  "))
		return family == 7 && model == 0x5b ? 9000 : 6000;
	return NCCL_LOC_BW;
}

static bool any_of(const char *text, const char *const *words, size_t n,
		   bool prefix)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (prefix ? starts(text, words[i]) : !strcmp(text, words[i]))
			return true;
	return false;
}

bool nccl_path_type(const char *text)
{
	static const char *const words[] = {
		"LOC", "NVL", "NVB", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS",
	};

	return any_of(text, words, sizeof(words) / sizeof(words[0]), false);
}

/* The library compares as many bytes as each of these has. */
bool nccl_speed_known(const char *text)
{
	static const char *const words[] = {
		"2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s",
		"5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe",
		"32.0 GT/s PCIe", "64.0 GT/s PCIe",
	};

	return any_of(text, words, sizeof(words) / sizeof(words[0]), true);
}
