// SPDX-License-Identifier: GPL-2.0-only
/* Columns of the tables of each noun; keys are those of json.c. */
#include <stddef.h>

#include "columns.h"

const struct column fport_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "DEVICE", "device", F_TEXT, false },
	{ "INDEX", "index", F_NUMBER, true },
	{ "HOST", "host", F_TEXT, false },
	{ "FABRIC", "fabric", F_TEXT, false },
	{ "DRIVER", "driver", F_TEXT, false },
	{ "BRIDGE DRIVER", "bridge_driver", F_TEXT, true },
	{ "MODE", "mode", F_TEXT, false },
	{ "ENGINE", "engine", F_TEXT, false },
	{ "PROTECTION", "protection", F_TEXT, true },
	{ "GROUP", "iommu_group", F_TEXT, true },
	{ "OTHERS", "group_others", F_NUMBER, true },
	{ "OTHER DEVICES", "group_devices", F_LIST, true },
	{ "PCI", "pci_name", F_TEXT, false },
	{ "ALIVE", "alive", F_FLAG, false },
	{ "MANAGER", "manager", F_FLAG, false },
	{ "EMULATED", "emulated", F_FLAG, true },
	{ "ID", "id", F_NUMBER, true },
	{ "PEER", "peer", F_NUMBER, true },
	{ "GENERATION", "generation", F_NUMBER, true },
	{ "QUEUES", "queues", F_NUMBER, false },
	{ "MRS", "mrs", F_NUMBER, false },
	{ "WINDOWS", "windows", F_NUMBER, false },
	{ "PINNED", "pinned_bytes", F_SIZE, false },
	{ "FILES", "open_files", F_NUMBER, false },
	{ "OBJECTS", "objects", F_NUMBER, true },
	{ NULL, NULL, F_TEXT, false }
};

const struct column function_columns[] = {
	{ "DEVICE", "pci_name", F_TEXT, false },
	{ "KIND", "kind", F_TEXT, false },
	{ "SUPPOSED", "kind_supposed", F_FLAG, true },
	{ "STATE", "state", F_STATE, false },
	{ "LINK", "link", F_LINK, false },
	{ "CAPABLE OF", "capability", F_LINK, true },
	{ "ATTAINABLE", "attainable", F_LINK, true },
	{ "SLOW", "slow", F_FLAG, false },
	{ "NUMA", "numa_node", F_NUMBER, false },
	{ "DRIVER", "driver", F_TEXT, false },
	{ "ACS", "acs", F_TEXT, false },
	{ "CONTROL", "acs_control", F_TEXT, true },
	{ "GROUP", "iommu_group", F_TEXT, true },
	{ "IOMMU", "iommu_type", F_TEXT, true },
	{ "SLOT", "slot", F_TEXT, true },
	{ "FUNCTION OF", "physical_function", F_TEXT, true },
	{ "VFS", "virtual_functions", F_NUMBER, true },
	{ "PCI ID", "pci_id", F_TEXT, false },
	{ "SUBSYSTEM", "subsystem_id", F_TEXT, true },
	{ "CLASS", "pci_class", F_TEXT, true },
	{ "PARENT", "parent", F_TEXT, true },
	{ "HOST BRIDGE", "host_bridge", F_TEXT, true },
	{ "MODEL", "model", F_TEXT, false },
	{ NULL, NULL, F_TEXT, false }
};

const struct column switch_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "ID", "id", F_NUMBER, true },
	{ "PORTS", "ports", F_NUMBER, false },
	{ "UP", "ports_up", F_NUMBER, false },
	{ NULL, NULL, F_TEXT, false }
};

const struct column port_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "ID", "id", F_NUMBER, true },
	{ "SWITCH", "switch", F_TEXT, false },
	{ "NUMBER", "number", F_NUMBER, false },
	{ "KIND", "kind", F_TEXT, false },
	{ "STATE", "state", F_STATE, false },
	{ "LINK", "link", F_LINK, false },
	{ "CAPABLE OF", "capability", F_LINK, true },
	{ "LEADS TO", "leads_to", F_TEXT, false },
	{ "PEER", "peer", F_TEXT, true },
	{ "GENERATION", "generation", F_TEXT, true },
	{ "MANAGER", "manager", F_FLAG, true },
	{ "LOCAL", "local", F_FLAG, true },
	{ NULL, NULL, F_TEXT, false }
};

const struct column host_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "ID", "id", F_NUMBER, true },
	{ "STATE", "state", F_STATE, false },
	{ "PORTS", "ports", F_LIST, false },
	{ "LOCAL", "local", F_FLAG, false },
	{ NULL, NULL, F_TEXT, false }
};

const struct column appliance_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "ID", "id", F_NUMBER, true },
	{ "KIND", "kind", F_TEXT, false },
	{ "UPLINKS", "uplinks", F_LIST, false },
	{ NULL, NULL, F_TEXT, false }
};

const struct column endpoint_columns[] = {
	{ "NAME", "name", F_TEXT, false },
	{ "ID", "id", F_NUMBER, true },
	{ "KIND", "kind", F_TEXT, false },
	{ "STATE", "state", F_STATE, false },
	{ "HOST", "host", F_TEXT, true },
	{ "PORT", "port", F_TEXT, false },
	{ "SLOT", "slot", F_NUMBER, false },
	{ "APPLIANCE", "appliance", F_TEXT, true },
	{ "NUMBER", "number", F_NUMBER, true },
	{ "UPLINK", "uplink", F_TEXT, false },
	{ "SWITCH", "switch", F_TEXT, true },
	{ "SIZE", "size", F_SIZE, false },
	{ "WIDTH", "width", F_NUMBER, true },
	{ "PCI ID", "pci_id", F_TEXT, true },
	{ "PCI DEVICE", "pci_name", F_TEXT, false },
	{ "DRIVER", "driver", F_TEXT, false },
	{ "CLASS", "pci_class", F_TEXT, true },
	{ "SYSFS", "sysfs", F_TEXT, true },
	{ NULL, NULL, F_TEXT, false }
};
