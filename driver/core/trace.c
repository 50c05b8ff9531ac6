// SPDX-License-Identifier: GPL-2.0-only
/* Instantiates the tracepoints of trace.h. */
#include "object.h"
#include "report.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
