// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>

#include "report.h"

static void print(const char *format, va_list arguments, const char *outcome)
{
	vprintf(format, arguments);
	printf("%s\n", outcome);
}

bool can_repair(struct report *report, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments, report->repair ? ": repaired" : "");
	va_end(arguments);
	report->found++;
	report->repaired += report->repair;
	return report->repair;
}

void cannot_repair(struct report *report, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print(format, arguments, report->repair ? ": CANNOT BE REPAIRED" : "");
	va_end(arguments);
	report->found++;
}

int report_code(const struct report *report)
{
	return (report->found ? FSCK_DAMAGED : 0) | (report->repaired ? FSCK_REPAIRED : 0);
}
