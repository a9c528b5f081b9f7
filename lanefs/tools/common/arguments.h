/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LANEFS_TOOLS_ARGUMENTS_H
#define LANEFS_TOOLS_ARGUMENTS_H

/* The exits that all tools share: @code is the tool's for wrong arguments, or for what failed. */

/* After getopt_long() has said what is wrong. */
__attribute__((noreturn)) void die_usage(int code);

/* The one device or file that is left of the arguments. */
const char *only_operand(int code, int argc, char **argv);

/* @error: what device_open() or image_open() returned, not 0. */
__attribute__((noreturn)) void die_open(int code, const char *path, int error);

#endif
