# SPDX-License-Identifier: GPL-2.0-only
"""Runs the workloads of the C microbenchmark as loads."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fscale.model import catalogue, fault
from fscale.model.bench import BenchOutput, Descriptor
from fscale.model.errors import Exit, FscaleError
from fscale.model.load import LoadSettings, Outcome, Target
from fscale.model.results import Status
from fscale.system.environment import of_children
from fscale.system.programs import made

_DESCRIPTORS = TypeAdapter(list[Descriptor])


class Microbench:
    """One workload of `fscale-bench`."""

    synced = True
    named = True
    sliced = True
    oversubscribes = True
    user: str | None = None

    def __init__(self, descriptor: Descriptor, binary: Path) -> None:
        self.descriptor = descriptor
        self.binary = binary

    def missing(self) -> str | None:
        """Return None: without the binary there would be no descriptor."""
        return None

    def version(self) -> str | None:
        """Return None: a digest of the binary is recorded."""
        return None

    def prepare(self, target: Target, run: Callable[[list[str]], str]) -> None:
        """Do nothing: the binary sets up by itself before it reports that it is ready."""

    def command(
        self, target: Target, settings: LoadSettings, sync: tuple[int, int] | None
    ) -> list[str]:
        """Return the command line of the microbenchmark."""
        key = target.key
        argv = [str(self.binary), "--workload", key.workload, "--dir", str(target.directory)]
        argv += ["--cpus", ",".join(str(cpu) for cpu in target.cpus), "--mode", key.mode]
        if key.workers_per_cpu > 1:  # an older microbenchmark knows one worker per CPU only
            argv += ["--workers-per-cpu", str(key.workers_per_cpu)]
        argv += ["--duration", f"{key.duration:g}", "--warmup", f"{settings.warmup:g}"]
        for flag, value in (
            ("--min-window", settings.min_window),
            ("--interval", settings.interval),
            ("--max-stock", settings.max_stock),
            ("--slice", settings.slice),
        ):
            argv += (
                [flag, f"{value:g}" if isinstance(value, float) else str(value)] if value else []
            )
        if settings.settle:
            argv += ["--settle"]
        argv += ["--seed", str(target.seed), "--space", str(target.space)]
        for name, option in key.options.items():
            argv += ["--option", f"{name}={option}"]
        if target.cgroup:
            argv += ["--cgroup", str(target.cgroup)]
        for path in target.counters:
            argv += ["--counter", path]
        if settings.latency or key.open_loop:
            argv += ["--latency", str(target.scratch)]
        if sync:
            argv += ["--sync-fds", f"{sync[0]},{sync[1]}"]
        return argv

    def parse(self, target: Target, returncode: int, stdout: str, stderr: str) -> Outcome:
        """Parse the one JSON object that the binary prints."""
        tail = " / ".join(stderr.strip().splitlines()[-3:])
        try:
            bench = BenchOutput.model_validate(json.loads(stdout))
        except (ValueError, ValidationError) as error:
            if isinstance(error, ValidationError):
                tail = f"{tail}; {catalogue.explain(error)}".removeprefix("; ")
            how = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
            return Outcome(
                "error",
                f"the microbenchmark printed no valid result ({how}): {tail or 'no error output'}",
                # Its failures in a file system it prints: this one is of the place of its output.
                fault.of_exit(
                    returncode, fault.of_output(tail, "load" if returncode < 0 else "machine")
                ),
            )
        status: Status = bench.status
        reason = bench.reason
        if bench.error:
            error_ = bench.error
            reason = f"{error_.call} {error_.path or ''}: {error_.name} ({error_.message})"
            if bench.reason:
                reason = f"{bench.reason}: {reason}"
        if returncode == Exit.SKIPPED:
            status = "skipped"
        elif returncode != 0 and status == "ok":
            status = "error"
            reason = f"exit code {returncode} of the microbenchmark after a valid result: {tail}"
        cpu_seconds = bench.cgroup_cpu_seconds
        if cpu_seconds is None:
            cpu_seconds = sum(w.user_seconds + w.system_seconds for w in bench.workers)
        outcome = Outcome(
            status,
            reason,
            fault=fault.of_bench(bench.error, [target.scratch]) if bench.error else "filesystem",
            ops=bench.ops,
            seconds=bench.seconds,
            cpu=bench.cpu,
            own_cpu_seconds=cpu_seconds,
            others_cpu_seconds=max(0.0, bench.busy_cpu_seconds - cpu_seconds),
            bench=bench,
        )
        if bench.latency:
            # numpy takes its time to load.
            from fscale.model.histogram import summarise  # noqa: PLC0415
            from fscale.runner.latency import by_turn, counts  # noqa: PLC0415

            files = [target.scratch / Path(name).name for name in bench.latency.files]
            outcome.latency = summarise(counts(files), sum(bench.latency.dropped))
            if bench.latency.turns:
                outcome.turn_latencies = by_turn(target.scratch / Path(bench.latency.turns).name)
        return outcome


def find(binary: Path) -> list[Microbench]:
    """Return all workloads of the binary, in its own order.

    Raises:
        FscaleError: the binary is missing and cannot be compiled, or its list is not valid.
    """
    if not made(binary).exists():
        raise FscaleError(f"{binary} does not exist")
    try:
        done = subprocess.run(
            [str(binary), "--list"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env=of_children(),
        )
        descriptors = _DESCRIPTORS.validate_json(done.stdout)
    except (OSError, subprocess.SubprocessError, ValidationError) as error:
        raise FscaleError(f"{binary} --list does not work ({error}); compile it anew") from None
    return [Microbench(descriptor, binary) for descriptor in descriptors]
