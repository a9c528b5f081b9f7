// SPDX-License-Identifier: GPL-2.0-only
#include "stint.h"

void stint_round(struct worker *worker)
{
	worker->stint.before_ops = atomic_load(&worker->ops);
	worker->stint.before_ns = now_ns();
}

void stint_begin(struct worker *worker)
{
	struct stint *stint = &worker->stint;

	stint->first_ops = atomic_load(&worker->ops);
	stint->bytes = atomic_load(&worker->bytes);
	stint->cpu_ns = own_cpu_ns();
	stint->first_ns = now_ns();
}

void stint_end(struct worker *worker)
{
	struct stint *stint = &worker->stint;

	stint->last_ns = now_ns();
	stint->cpu_ns = own_cpu_ns() - stint->cpu_ns;
	stint->ops = atomic_load(&worker->ops) - stint->first_ops;
	stint->bytes = atomic_load(&worker->bytes) - stint->bytes;
}

double stint_seconds(const struct stint *stint, uint64_t begin_ns, double *ops)
{
	if (stint->last_ns <= begin_ns)
		return 0;
	if (stint->before_ns && stint->before_ns < begin_ns && stint->first_ns > begin_ns)
		*ops += (double)(stint->first_ops - stint->before_ops) *
			(double)(stint->first_ns - begin_ns) /
			(double)(stint->first_ns - stint->before_ns);
	return (double)(stint->last_ns - begin_ns) / 1e9;
}
