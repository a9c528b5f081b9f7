# SPDX-License-Identifier: GPL-2.0-only
"""Runs the commands of a set-up one after another, and shows the time of each."""

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from fscale.model.errors import Exit, FscaleError, MissingTool
from fscale.model.paths import TOOL_PATH


class StepError(FscaleError):
    """A command of the set-up failed; the text has the end of its output."""

    code = Exit.FAILED


def need(tool: str, package: str) -> str:
    """The path of `tool`; MissingTool with the Debian package if it is not installed."""
    path = shutil.which(tool, path=TOOL_PATH)
    if path is None:
        raise MissingTool(f"{tool} is missing; apt-get install {package}")
    return path


class Steps:
    """Runs the commands of a set-up and reports how long each took.

    With `dry`, commands are printed and not executed. A step that takes longer than a few
    seconds shows its last line of output while it runs.
    """

    def __init__(self, console: Console, dry: bool = False) -> None:
        self.console = console
        self.dry = dry
        self._start = time.monotonic()

    def note(self, text: str) -> None:
        """Print a line with the seconds since the start of fscale's command."""
        elapsed = time.monotonic() - self._start
        line = f"[{elapsed:6.1f} s] {text}"
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def run(
        self,
        argv: Sequence[str],
        what: str,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Run `argv` to its end; StepError with its last lines if it fails."""
        if self.dry:
            self.console.print(shlex.join(argv), markup=False, highlight=False, soft_wrap=True)
            return
        self.note(what)
        tail: list[str] = []
        with subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            try:
                self._follow(process.stdout, tail)
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            raise StepError(
                f"{what}: {shlex.join(argv)} failed with exit code {process.returncode}:\n"
                + "\n".join(tail)
            )

    def _follow(self, lines: Iterable[str], tail: list[str]) -> None:
        shown = time.monotonic()
        for line in lines:
            tail.append(line.rstrip())
            del tail[:-20]
            if time.monotonic() - shown > 5 and tail[-1]:
                shown = time.monotonic()
                self.note(f"    {tail[-1][:100]}")
