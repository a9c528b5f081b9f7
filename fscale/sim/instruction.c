// SPDX-License-Identifier: GPL-2.0-only
#include "instruction.h"

#include <string.h>

/* Legacy prefixes but LOCK and REP, and REX (AMD64 Architecture Programmer's Manual 3, 1.2). */
static bool is_prefix(unsigned char byte)
{
	static const char legacy[] = "\x26\x2e\x36\x3e\x64\x65\x66\x67";

	return (byte && memchr(legacy, byte, sizeof(legacy) - 1)) || (byte & 0xf0) == 0x40;
}

static bool is_string(unsigned char opcode)
{
	return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

struct traits instruction_traits(const unsigned char *bytes, size_t size)
{
	struct traits traits = { 0 };
	bool repeated = false;
	size_t i = 0;

	for (; i < size; i++) {
		if (bytes[i] == 0xf0)
			traits.locked = true;
		else if (bytes[i] == 0xf2 || bytes[i] == 0xf3)
			repeated = true;
		else if (!is_prefix(bytes[i]))
			break;
	}
	if (i == size)
		return traits;
	traits.pause = size == 2 && bytes[0] == 0xf3 && bytes[1] == 0x90;
	traits.string = repeated && is_string(bytes[i]);
	traits.syscall = bytes[i] == 0x0f && i + 1 < size && bytes[i + 1] == 0x05;
	/* xchg with a memory operand locks without a LOCK prefix. */
	if ((bytes[i] == 0x86 || bytes[i] == 0x87) && i + 1 < size && bytes[i + 1] >> 6 != 3)
		traits.locked = true;
	return traits;
}
