// SPDX-License-Identifier: GPL-2.0-only
/*
 * syscall_tax N COMMAND...: run COMMAND with N more kernel instructions in
 * each of its system calls.
 *
 * They are a seccomp filter that adds constants and then allows the call, so
 * the slow-down is real CPU time of the caller inside the kernel, of a size
 * that can be set in steps of about one cycle. The filter reads an argument of
 * the call: one that depends on the number only would be cached by the kernel
 * (seccomp_cache_prepare) and cost nothing. N = 0 still installs the filter, so
 * that two taxes differ by their instructions alone.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST (BPF_MAXINSNS - 2)
#define PARTS 7 /* filters a process: the kernel takes 32768 instructions in all */

static int install(unsigned int count)
{
	static struct sock_filter code[BPF_MAXINSNS];
	struct sock_fprog program = { .len = (unsigned short)(count + 2), .filter = code };
	unsigned int i;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, args[0]));
	for (i = 1; i <= count; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, i);
	code[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	unsigned long tax;
	char *end;

	if (argc < 3) {
		fprintf(stderr, "usage: syscall_tax INSTRUCTIONS COMMAND...\n");
		return 2;
	}
	errno = 0;
	tax = strtoul(argv[1], &end, 10);
	if (errno || *end || end == argv[1] || tax > 1UL * PARTS * MOST) {
		fprintf(stderr, "syscall_tax: %s is not a number up to %d\n", argv[1], PARTS * MOST);
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		fprintf(stderr, "syscall_tax: no_new_privs: %s\n", strerror(errno));
		return 1;
	}
	do {
		unsigned int part = tax > MOST ? MOST : (unsigned int)tax;

		if (install(part)) {
			fprintf(stderr, "syscall_tax: seccomp filter: %s\n", strerror(errno));
			return 1;
		}
		tax -= part;
	} while (tax);
	execv(argv[2], argv + 2);
	fprintf(stderr, "syscall_tax: %s: %s\n", argv[2], strerror(errno));
	return 1;
}
