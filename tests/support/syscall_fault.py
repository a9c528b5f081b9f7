# SPDX-License-Identifier: GPL-2.0-only
"""Run `python -m tests.support.syscall_fault NUMBER COMMAND`: one system call fails in COMMAND."""

import ctypes
import errno
import os
import struct
import sys

SET_SECCOMP, FILTER = 22, 2  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    """The kernel's struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _fail_syscall(number: int) -> None:
    rules = (
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, number),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
        (RETURN, 0, 0, ALLOW),
    )
    program = _Program(len(rules), b"".join(struct.pack("HBBI", *rule) for rule in rules))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_SECCOMP)")


if __name__ == "__main__":
    _fail_syscall(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
