// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults to plant in the side under test, to show that the comparison finds them. Each happens
 * once in a process, at the first fitting operation after the first FIRST.
 */
#include <stdio.h>
#include <string.h>

#include "model.h"

#define FIRST	300

static const struct {
	const char *name;
	const char *what;
} faults[] = {
	{ "lost-write", "a write reports success and writes nothing" },
	{ "torn-write", "the last byte of a write is another" },
	{ "lost-truncate", "a truncate reports success and changes nothing" },
	{ "lost-unlink", "an unlink reports success and leaves the name" },
	{ "lost-rename", "a rename reports success and moves nothing" },
	{ "double-rename", "a rename leaves the old name as a link" },
	{ "wrong-errno", "a failed call gives EIO" },
	{ "lost-mode", "a chmod reports success and changes nothing" },
	{ "lost-mtime", "a write leaves the modification time as it was" },
	{ "lost-entry", "a directory listing lacks an entry" },
	{ "lost-xattr", "an attribute is set successfully and is not there" },
	{ "lost-mmap", "a store to a mapping is undone" },
};

bool fault_known(const char *name)
{
	for (size_t n = 0; n < sizeof(faults) / sizeof(*faults); n++)
		if (!strcmp(faults[n].name, name))
			return true;
	return false;
}

void fault_list(void)
{
	for (size_t n = 0; n < sizeof(faults) / sizeof(*faults); n++)
		printf("  %-14s %s\n", faults[n].name, faults[n].what);
}

/* Whether the fault `name` is to happen now. */
bool fault_due(struct process *p, const char *name)
{
	const char *wanted = p->options->fault;

	if (!wanted || p->fault_done || p->op < FIRST || strcmp(wanted, name))
		return false;
	p->fault_done = true;
	note(p, "(planted: %s)", name);
	return true;
}
