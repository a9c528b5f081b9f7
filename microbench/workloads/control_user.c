// SPDX-License-Identifier: GPL-2.0-only
#include "../core/workload.h"

#define ROUNDS 1000	/* some microseconds, so that the loop around it costs nothing */

static PER_WORKER uint64_t state;

static enum outcome set_up(struct worker *w)
{
	state = w->seed | 1;
	return OP_OK;
}

/* In registers alone: neither memory nor the kernel can be what holds it up. */
static inline enum outcome operation(struct worker *w)
{
	uint64_t x = state;

	(void)w;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__asm__ volatile("" : "+r"(x));
	}
	state = x;
	return OP_OK;
}
DEFINE_LOOPS(operation)

static const struct workload control_user = {
	.id = "control_user",
	.title = "Compute in registers, without system calls",
	.operation = "1000 rounds of xorshift",
	.type = TYPE_DATA,
	.action = ACTION_READ,
	.sharing = SHARING_LOW,
	.contention = "none",
	.setup_text = "nothing",
	.min_cores = 1,
	.modes = IN_MODE(MODE_BUFFERED),
	.named_only = true,
	.control = true,
	.setup = set_up,
	LOOPS(operation),
};
REGISTER_WORKLOADS(&control_user);
