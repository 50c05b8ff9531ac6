// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

const unsigned int test_limit_s = 600;	/* a hang, on any machine */
static char fabric_name[32];
static FILE *log_file;

unsigned int test_objects(void)
{
	return 0;
}

const char *own_fabric(void)
{
	const char *given = getenv("FABREX_TEST_PORT");
	char port[64];

	if (given) {
		setenv("FABREX_PORT", given, 1);
		return given;
	}
	snprintf(fabric_name, sizeof(fabric_name), "fi-%d", (int)getpid());
	snprintf(port, sizeof(port), "loopback:%s", fabric_name);
	setenv("FABREX_PORT", port, 1);
	return fabric_name;
}

void log_catch(void)
{
	setenv("FI_LOG_LEVEL", "info", 1);
	setenv("FI_LOG_PROV", "fabrex", 1);
	log_file = tmpfile();
	CHECK(log_file);
	CHECK(dup2(fileno(log_file), STDERR_FILENO) == STDERR_FILENO);
}

bool log_says(const char *first, const char *second)
{
	char line[1024];
	bool found = false;

	fflush(stderr);
	rewind(log_file);
	while (fgets(line, sizeof(line), log_file))
		found |= strstr(line, first) && strstr(line, second);
	if (!found)
		printf("# nothing logged says \"%s\" and \"%s\"\n", first, second);
	rewind(log_file);
	CHECK(!ftruncate(fileno(log_file), 0));
	CHECK(!lseek(STDERR_FILENO, 0, SEEK_SET));
	return found;
}

struct fi_info *hints_new(void)
{
	struct fi_info *hints = fi_allocinfo();

	CHECK(hints);
	hints->fabric_attr->prov_name = strdup("fabrex");
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_ALLOCATED |
		FI_MR_VIRT_ADDR | FI_MR_LOCAL | FI_MR_ENDPOINT;
	return hints;
}

struct fi_info *info_new(const struct fi_info *hints)
{
	struct fi_info *info = NULL;

	CHECK_EQ(fi_getinfo(VERSION, NULL, NULL, 0, hints, &info), 0);
	CHECK(info && !strcmp(info->fabric_attr->prov_name, "fabrex"));
	return info;
}

void open_domain(struct opened *opened, uint64_t caps, int mr_mode)
{
	struct fi_info *hints = hints_new();

	hints->caps = caps ? caps : FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode |= mr_mode;
	opened->info = info_new(hints);
	fi_freeinfo(hints);
	opened->info->domain_attr->mr_mode |= mr_mode;
	CHECK_EQ(fi_fabric(opened->info->fabric_attr, &opened->fabric, NULL), 0);
	CHECK_EQ(fi_domain(opened->fabric, opened->info, &opened->domain, NULL),
		 0);
}

void close_domain(struct opened *opened)
{
	CHECK_EQ(fi_close(&opened->domain->fid), 0);
	CHECK_EQ(fi_close(&opened->fabric->fid), 0);
	fi_freeinfo(opened->info);
}

unsigned int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
