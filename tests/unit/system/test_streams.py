# SPDX-License-Identifier: GPL-2.0-only
"""Standard streams as callers leave them."""

import fcntl
import os
import subprocess
import sys
import time

from fscale.model import paths

TALK = """
import sys
from fscale.system import streams
streams.take_over()
for number in range(20000):
    print(number)
"""


def test_a_full_pipe_that_does_not_block_loses_nothing() -> None:
    """Some callers, among them Node.js, hand on pipes with O_NONBLOCK."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    with subprocess.Popen([sys.executable, "-c", TALK], cwd=paths.ROOT, stdout=writer) as talks:
        os.close(writer)
        time.sleep(0.5)  # until the pipe is full
        with os.fdopen(reader) as pipe:
            assert pipe.read().splitlines() == [str(number) for number in range(20000)]
    assert talks.returncode == 0
