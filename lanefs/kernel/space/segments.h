/* SPDX-License-Identifier: GPL-2.0-only */
/* Segments (segments.c), for the streams that fill them (streams.c) and for victims.c. */
#ifndef LANEFS_SEGMENTS_H
#define LANEFS_SEGMENTS_H

#include "space/space.h"

/* In use in a segment that is not worth it, or more. */
#define LANEFS_VICTIM_MOST	(LANEFS_SEGMENT_BLOCKS - LANEFS_SEGMENT_BLOCKS / 32)

/* Segments of a domain, by their numbers: from `begin` up to `end`. */
struct lanefs_part {
	u32 begin, end;
};

static inline struct lanefs_segment *lanefs_segment_of(const struct lanefs_group *group, u32 bit)
{
	return &group->g_segments[bit / LANEFS_SEGMENT_BLOCKS];
}

/* Whether a collector may take it, if that is worth it. */
static inline bool lanefs_segment_candidate(const struct lanefs_segment *segment)
{
	return READ_ONCE(segment->state) == LANEFS_SEGMENT_USED && !READ_ONCE(segment->stuck);
}

void lanefs_segment_take(struct lanefs_domain *domain, struct lanefs_group *group,
			 struct lanefs_segment *segment, u8 state);
void lanefs_segment_free(struct lanefs_domain *domain, struct lanefs_group *group,
			 struct lanefs_segment *segment);
bool lanefs_segments_lock(struct lanefs_domain *domain);
void lanefs_segments_unlock(struct lanefs_domain *domain, bool locked);
struct lanefs_part lanefs_part(const struct lanefs_domain *domain, u32 nth, u32 parts);

#endif
