/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_CORE_JOINLIST_H
#define LANEFS_CORE_JOINLIST_H

#include "shim.h"

/*
 * A list of what has joined a transaction (Son et al., FAST'18, section 3.1.1): nodes are inserted
 * without a lock, and removed in two phases: a mark now, which may be taken back, and the link
 * when the list is fetched. It is fetched when all who could insert have ended.
 *
 * One task at a time inserts, removes or restores a given node; any number does so with others.
 */
struct lanefs_join {
	struct lanefs_join *next;
	enum lanefs_joined {
		LANEFS_JOIN_OUT,	/* of no list */
		LANEFS_JOIN_IN,
		LANEFS_JOIN_REMOVED,	/* linked still */
	} state;
};

struct lanefs_joinlist {
	struct lanefs_join *last;
	struct lanefs_join first;	/* before the first node */
};

static inline void lanefs_joinlist_init(struct lanefs_joinlist *list)
{
	list->first.next = NULL;
	list->last = &list->first;
}

/* Inserts a node that is out, or restores one that was removed from this list. */
static inline void lanefs_joinlist_insert(struct lanefs_joinlist *list, struct lanefs_join *node)
{
	struct lanefs_join *before;

	if (node->state == LANEFS_JOIN_OUT) {
		WRITE_ONCE(node->next, NULL);
		before = xchg(&list->last, node);
		/* Until here what follows is not linked; nobody walks the list before we have ended. */
		WRITE_ONCE(before->next, node);
	}
	node->state = LANEFS_JOIN_IN;
}

static inline void lanefs_joinlist_remove(struct lanefs_join *node)
{
	node->state = LANEFS_JOIN_REMOVED;
}

/*
 * The first node, of those that are left, is out of the list, and returned; NULL: it is empty.
 * @joined: whether it had not been removed.
 */
static inline struct lanefs_join *lanefs_joinlist_fetch(struct lanefs_joinlist *list, bool *joined)
{
	struct lanefs_join *node = list->first.next;

	if (!node)
		return NULL;
	list->first.next = node->next;
	if (!node->next)
		list->last = &list->first;
	*joined = node->state == LANEFS_JOIN_IN;
	node->state = LANEFS_JOIN_OUT;
	return node;
}

#endif
