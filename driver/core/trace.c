// SPDX-License-Identifier: GPL-2.0-only
/* Makes the tracepoints of trace.h; nothing else. */
#include "object.h"
#include "report.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
