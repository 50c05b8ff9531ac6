// SPDX-License-Identifier: LGPL-2.1-or-later
/* Exact fractions, and plan_fail(). Called from all of lib/plan. */
#include <errno.h>
#include <stdarg.h>

#include "plan/plan.h"

int plan_fail(struct plan_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
	}
	return -code;
}

uint64_t plan_gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;

		a = b;
		b = r;
	}
	return a;
}

struct plan_ratio plan_ratio(uint64_t num, uint64_t den)
{
	uint64_t g = plan_gcd(num, den);

	return g ? (struct plan_ratio){ num / g, den / g } :
		   (struct plan_ratio){ 0, 1 };
}

int plan_ratio_compare(struct plan_ratio a, struct plan_ratio b)
{
	unsigned __int128 l = (unsigned __int128)a.num * b.den;
	unsigned __int128 r = (unsigned __int128)b.num * a.den;

	return l < r ? -1 : l > r;
}

int plan_ratio_multiply(struct plan_ratio a, struct plan_ratio b,
			struct plan_ratio *out)
{
	struct plan_ratio x = plan_ratio(a.num, b.den);
	struct plan_ratio y = plan_ratio(b.num, a.den), r;

	if (__builtin_mul_overflow(x.num, y.num, &r.num) ||
	    __builtin_mul_overflow(x.den, y.den, &r.den))
		return -EOVERFLOW;
	*out = r;
	return 0;
}

double plan_ratio_value(struct plan_ratio r)
{
	return (double)r.num / (double)r.den;
}
