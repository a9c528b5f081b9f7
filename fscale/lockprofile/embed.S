/* SPDX-License-Identifier: GPL-2.0-only */
/* The compiled BPF programs as bytes of fscale-locks. */
	.section .rodata
	.globl locks_begin, locks_end, memory_begin, memory_end
	.balign 8
locks_begin:
	.incbin LOCKS
locks_end:
	.balign 8
memory_begin:
	.incbin MEMORY
memory_end:
	.section .note.GNU-stack, "", %progbits
