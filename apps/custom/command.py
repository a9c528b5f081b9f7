# SPDX-License-Identifier: GPL-2.0-only
"""A load that is a command: it is timed from start to end, and its output has the figures."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fscale.apps.base import App, AppResult, Options, Site, Timing
from fscale.apps.custom.account import Account
from fscale.apps.custom.figures import figures, latencies
from fscale.apps.custom.options import filled
from fscale.apps.meter import Meter, between
from fscale.apps.process import Processes, cpu_list
from fscale.model.loadfile import NamedLoad
from fscale.model.runs import fingerprint
from fscale.system.executor import which


class CommandLoad(App):
    """A command, which a TOML file names."""

    def __init__(self, load: NamedLoad) -> None:
        assert load.file.command is not None
        self._load, self._command = load, load.file.command
        self.unit = load.file.unit
        self.user = load.file.user
        self.descriptor = load.descriptor([load.file.mode or "buffered"])
        self.oversubscribes = self._command.copies == "cores"

    def missing(self) -> str | None:
        """The package or the program that is not installed, or None."""
        for program, package in self._load.file.needs.items():
            if not which(program):
                return package
        programs = {argv[0] for argv in self._load.file.argvs if "{" not in argv[0]}
        lacking = sorted(one for one in programs if not which(one))
        return f"the program {lacking[0]}" if lacking else None

    def version(self) -> str:
        """The program's place and digest: not every one tells its version, and PATH chooses it."""
        program = which(self._command.run[0])
        if program is None or not os.access(program, os.R_OK):
            return self._command.run[0]
        return f"{program} {fingerprint(Path(program))}"

    def run(
        self, site: Site, timing: Timing, options: Options, ready: Callable[[], None]
    ) -> AppResult:
        """Run the set-up (untimed), then all copies at once."""
        account = Account(self._load.file.user)
        account.owns(site.dirs)
        count = site.workers if self._command.copies == "cores" else self._command.copies
        values = self._values(site, timing, options)
        limit = self._command.limit or timing.duration + timing.margin
        common: dict[str, Any] = {"user": account, "cwd": site.dirs[0]}
        meter = Meter(site.cpus, site.cgroup)
        with Processes(site) as processes, ThreadPoolExecutor(count) as pool:
            for argv in self._command.setup:
                made = _fill(argv, values | {"worker": 0})
                processes.run(made, timeout=5 * timing.margin, **common)
            ready()
            start = meter.open()
            running = [
                pool.submit(
                    processes.run,
                    _fill(self._command.run, values | {"worker": number}),
                    timeout=limit,
                    cpus=self._cpus(site, number),
                    **common,
                )
                for number in range(count)
            ]
            try:
                outputs = [one.result() for one in running]
            except BaseException:  # a signal, too: the pool waits for its threads
                processes.kill()
                raise
            end = meter.close()
        copies = [figures(self._command, text) for text in outputs]
        amount, seconds = self._done(copies, end.clock - start.clock)
        return AppResult(
            amount=amount,
            unit=self.unit,
            seconds=seconds,
            usage=between(start, end),
            commands=processes.commands,
            latency=latencies(self._command, copies),
            extra={"copies": copies, "output": outputs[0][-2000:], "user": account.name},
        )

    def _values(self, site: Site, timing: Timing, options: Options) -> dict[str, object]:
        return {
            "directory": site.dirs[0],
            "here": self._load.path.parent,
            "cores": site.cores,
            "cpus": cpu_list(site.cpus),
            "seconds": f"{timing.duration:g}",
            "seed": site.seed,
            **filled(self._load.file.options, options, site),
        }

    def _cpus(self, site: Site, number: int) -> Sequence[int] | None:
        """One CPU for each copy if each CPU has as many; else they share all of them."""
        return [site.cpus[number % site.cores]] if self._command.copies == "cores" else None

    def _done(self, copies: list[dict[str, float]], elapsed: float) -> tuple[float, float]:
        """What all copies did, and in how many seconds."""
        if self._command.ops is not None:
            copies = [one | {"ops": self._command.ops} for one in copies]
        seconds = max((one["seconds"] for one in copies if "seconds" in one), default=elapsed)
        if any("rate" in one for one in copies):
            return sum(one["rate"] for one in copies) * seconds, seconds
        return sum(one["ops"] for one in copies), seconds


def _fill(argv: list[str], values: dict[str, object]) -> list[str]:
    return [argument.format_map(values) for argument in argv]
