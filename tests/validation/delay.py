# SPDX-License-Identifier: GPL-2.0-only
"""Microbenchmarks whose operations take longer by a set number of turns of an empty loop.

Both sides are one binary that differs in a variable of its environment, so nothing but the turns
differs. A delay in the kernel would be nearer to a patch, but a seccomp filter, which can be had
without a patch, is compiled to another place for each process and varies by 4% of a short call.
"""

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path

from fscale.model.paths import ROOT

BUILD = ROOT / "build" / "validation"
_OPERATION = "\toutcome = op(w);\t"
_DELAYED = "\toutcome = op(w); planted_wait();\t"
_VARIABLE = "FSCALE_PLANTED_TURNS"
_SOURCE = f"""\
// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

unsigned long planted_turns;

__attribute__((constructor)) static void planted_read(void)
{{
	const char *turns = getenv("{_VARIABLE}");

	planted_turns = turns ? strtoul(turns, NULL, 10) : 0;
}}
"""
_RARE_SOURCE = """\
// SPDX-License-Identifier: GPL-2.0-only
#include "workload.h"

#include <stdlib.h>

static unsigned long every, nanoseconds, left;

static unsigned long number(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void planted_read(void)
{
	every = left = number("FSCALE_PLANTED_EVERY");
	nanoseconds = number("FSCALE_PLANTED_NS");
}

void planted_wait(void)
{
	uint64_t end;

	if (!every || --left)
		return;
	left = every;
	end = now_ns() + nanoseconds;
	while (now_ns() < end)
		;
}
"""
_RARE_HEADER = """\
void planted_wait(void);

/* The plain loop: """
_HEADER = """\
extern unsigned long planted_turns;

static inline void planted_wait(void)
{
	for (unsigned long turn = planted_turns; turn; turn--)
		__asm__ volatile("");
}

/* The plain loop: """


def patched(
    name: str,
    changes: Mapping[str, str],
    sources: Mapping[str, str],
    *,
    everywhere: bool = False,
    only: Collection[str] = (),
) -> Path:
    """A microbenchmark with texts of core/workload.h replaced and sources added to core/.

    Each text is replaced where it comes first, or `everywhere`. It has all workloads, or `only`
    some, which are compiled sooner. SystemExit where a text is not there.
    """
    place = BUILD / name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "microbench", place / "microbench")
    for source in (place / "microbench/workloads").glob("*.c"):
        if only and source.stem not in only:
            source.unlink()
    core = place / "microbench/core"
    text = (core / "workload.h").read_text()
    for old, new in changes.items():
        if old not in text:
            raise SystemExit(f"{core / 'workload.h'} has no {old.strip()!r}")
        text = text.replace(old, new, -1 if everywhere else 1)
    (core / "workload.h").write_text(text)
    for source, content in sources.items():
        (core / source).write_text(content)
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    subprocess.run(["make", "-s", jobs, "-C", place / "microbench"], check=True)
    return place / "build/microbench/fscale-bench"


def _delayed() -> Path:
    binary = BUILD / "delayed" / "build/microbench/fscale-bench"
    if binary.exists():  # another build would be another run, which could not be gone on with
        return binary
    changes = {_OPERATION: _DELAYED, "/* The plain loop: ": _HEADER}
    return patched("delayed", changes, {"planted.c": _SOURCE})


def bench(turns: int) -> Path:
    """A microbenchmark whose operations take so many turns more."""
    return _delayed_by(f"fscale-bench-delay-{turns}", f"n={turns}")


def bench_of(turns: Mapping[str, int], name: str) -> Path:
    """The same with a number for each workload, and none for others."""
    cases = " ".join(f"*' {workload} '*) n={n} ;;" for workload, n in turns.items())
    return _delayed_by(f"fscale-bench-delay-{name}", f'case " $* " in {cases} *) n=0 ;; esac')


def _delayed_by(name: str, count: str) -> Path:
    return script(_delayed(), name, f"{_VARIABLE}=$n", before=f"{count}\n")


def rare(every: int, nanoseconds: int, *only: str) -> Path:
    """A microbenchmark of which one operation in `every` takes so much longer; 0: none does.

    `only` some workloads, or all.
    """
    name = "-".join(("rare", *only))
    binary = BUILD / name / "build/microbench/fscale-bench"
    made = binary.stat().st_mtime if binary.exists() else 0.0
    if any(file.stat().st_mtime > made for file in (ROOT / "microbench").rglob("*.[ch]")):
        changes = {_OPERATION: _DELAYED, "/* The plain loop: ": _RARE_HEADER}
        sources = {"planted.c": _RARE_SOURCE}
        binary = patched(name, changes, sources, everywhere=True, only=only)
    given = f"FSCALE_PLANTED_EVERY={every} FSCALE_PLANTED_NS={nanoseconds}"
    return script(binary, f"fscale-bench-{name}-{every}-{nanoseconds}", given)


def script(binary: Path, name: str, variable: str, before: str = "") -> Path:
    """A microbenchmark with a variable in its environment; `before` are lines of shell."""
    made = BUILD / name
    made.write_text(f'#!/bin/sh\n{before}{variable} exec {binary} "$@"\n')
    made.chmod(0o755)
    return made
