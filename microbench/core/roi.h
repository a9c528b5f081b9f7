/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program in a simulated guest tells the simulator: NOPs of eight bytes,
 * `nopl disp32(%rax,%rax,1)`, with a displacement that no compiler emits. A real
 * CPU does nothing at them; on other machines than x86-64 the functions are empty.
 *
 * Their meaning is in docs/design/simulator-model.md. `vCPU` is always the one that executes.
 */
#ifndef FSCALE_ROI_H
#define FSCALE_ROI_H

#include <stdint.h>

/* The first byte of the displacement; the other three are ROI_MAGIC. */
enum roi_code {
	ROI_FAST = 1,		/* neither clocks nor coherence */
	ROI_ORDERED,		/* clocks in order, no coherence */
	ROI_DETAILED,		/* clocks and coherence, all lines cold */
	ROI_BEGIN,		/* a window begins */
	ROI_END,		/* and ends */
	ROI_OP,			/* one operation is done */
	ROI_BIT_0,		/* the next bit of a number, the highest first */
	ROI_BIT_1,
	ROI_POINT,		/* that number is the point's */
	ROI_SEED,		/* ... the seed of what is random in the schedule */
	ROI_FREE,		/* ... the group of lines that cost nothing */
	ROI_WORK,		/* a worker of the point begins */
	ROI_CALL,		/* a call of a pair begins */
	ROI_RETURN,		/* and ends */
	ROI_PAIR,		/* that number is the pair's whose calls were the last */
};

#define ROI_MAGIC 0x51, 0xa5, 0x5a

#if defined(__x86_64__)
#define ROI_TELL(code)								\
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, %c0, 0x51, 0xa5, 0x5a"	\
			 : : "i"(code) : "memory")
#else
#define ROI_TELL(code) ((void)(code))
#endif

static inline void roi_number(uint32_t number)
{
	for (int bit = 31; bit >= 0; bit--) {
		if (number >> bit & 1)
			ROI_TELL(ROI_BIT_1);
		else
			ROI_TELL(ROI_BIT_0);
	}
}

/* The three modes take effect a little later: yield a few times after them. */
static inline void roi_mode_fast(void)
{
	ROI_TELL(ROI_FAST);
}

static inline void roi_mode_ordered(void)
{
	ROI_TELL(ROI_ORDERED);
}

static inline void roi_mode_detailed(void)
{
	ROI_TELL(ROI_DETAILED);
}

static inline void roi_begin(void)
{
	ROI_TELL(ROI_BEGIN);
}

static inline void roi_end(void)
{
	ROI_TELL(ROI_END);
}

static inline void roi_work(void)
{
	ROI_TELL(ROI_WORK);
}

static inline void roi_op(void)
{
	ROI_TELL(ROI_OP);
}

static inline void roi_point(uint32_t point)
{
	roi_number(point);
	ROI_TELL(ROI_POINT);
}

static inline void roi_pair(uint32_t pair)
{
	roi_number(pair);
	ROI_TELL(ROI_PAIR);
}

static inline void roi_seed(uint32_t seed)
{
	roi_number(seed);
	ROI_TELL(ROI_SEED);
}

static inline void roi_free(uint32_t group)
{
	roi_number(group);
	ROI_TELL(ROI_FREE);
}

#endif
