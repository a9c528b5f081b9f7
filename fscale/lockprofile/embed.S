/* SPDX-License-Identifier: GPL-2.0-only */
/* The compiled BPF program as bytes of fscale-locks. */
	.section .rodata
	.globl program_begin, program_end
	.balign 8
program_begin:
	.incbin PROGRAM
program_end:
	.section .note.GNU-stack, "", %progbits
