# SPDX-License-Identifier: GPL-2.0-only
"""Whose fault it is that a cell has no figure."""

import errno
from pathlib import Path

import pytest

from fscale.model import fault
from fscale.model.bench import BenchError


def bench_error(call: str, path: str | None, code: int, message: str = "") -> BenchError:
    return BenchError(call=call, path=path, errno=code, name="E", message=message, worker=None)


@pytest.mark.parametrize(
    ("call", "path", "code", "message", "blamed"),
    [
        ("pwrite", "/mnt/f", errno.EIO, "", "filesystem"),
        ("pwrite", "/mnt/f", errno.ENOSPC, "", "user"),
        ("creat", "/mnt/f", errno.EDQUOT, "", "user"),
        ("open", "/mnt/f", errno.ENOMEM, "", "machine"),
        ("write", "/results/.scratch/latency", errno.ENOSPC, "", "machine"),
        ("open", "/sys/fs/cgroup/x", errno.EACCES, "", "machine"),
        ("fork", None, errno.EAGAIN, "", "machine"),
        ("waitpid", None, 0, "worker 1 (pid 9) was killed by signal 9 (Killed)", "machine"),
        ("waitpid", None, 0, "worker 1 (pid 9) was killed by signal 7 (Bus error)", "filesystem"),
        ("wait", None, errno.ETIMEDOUT, "worker 1 hangs", "filesystem"),
    ],
)
def test_an_error_of_the_microbenchmark(
    call: str, path: str | None, code: int, message: str, blamed: str
) -> None:
    error = bench_error(call, path, code, message)
    assert fault.of_bench(error, [Path("/results/.scratch")]) == blamed


@pytest.mark.parametrize(
    ("name", "code", "blamed"),
    [
        ("/run/fscale/mnt/work", errno.EIO, "filesystem"),
        ("/run/fscale/mnt/work", errno.ENOSPC, "user"),
        ("/results/cells/x", errno.ENOSPC, "machine"),
        ("/results", errno.EROFS, "machine"),
        (None, errno.EINTR, "machine"),
    ],
)
def test_an_error_of_the_operating_system(name: str | None, code: int, blamed: str) -> None:
    error = OSError(code, "words", name)
    assert fault.of_os_error(error, [Path("/run/fscale/mnt")]) == blamed


@pytest.mark.parametrize(
    ("code", "text", "blamed"),
    [
        (1, "bad superblock", "filesystem"),
        (-11, "", "filesystem"),
        (-9, "", "machine"),
        (137, "", "machine"),
        (-25, "", "machine"),  # of ulimit -f, not of the file system
        (2, "exim: fork failed: Resource temporarily unavailable", "machine"),
        (32, "mount: /m: Cannot allocate memory", "machine"),
        (1, "mkfs: No space left on device", "user"),
    ],
)
def test_a_command_that_failed(code: int, text: str, blamed: str) -> None:
    assert fault.of_exit(code, fault.of_output(text, "filesystem")) == blamed
