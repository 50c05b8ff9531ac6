// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What libfabric calls in this library: fi_prov_ini(), and through what that
 * returns fi_getinfo() and fi_fabric().
 */
#include "provider.h"

/* FI_EXT_INI of the header needs a macro that is not installed. */
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

/* No info with settings that are not what somebody wanted. */
static int refuse(uint32_t version, const char *node, const char *service,
		  uint64_t flags, const struct fi_info *hints,
		  struct fi_info **info)
{
	(void)version;
	(void)node;
	(void)service;
	(void)flags;
	(void)hints;
	(void)info;
	INFO(FI_LOG_CORE,
	     "nothing is offered, since a setting is invalid: see above\n");
	return -FI_ENODATA;
}

struct fi_provider *fi_prov_ini(void)
{
	provider.getinfo = settings_read() ? refuse : info_get;
	provider.fabric = fabric_open;
	provider.cleanup = object_cleanup;
	return &provider;
}
