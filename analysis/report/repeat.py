# SPDX-License-Identifier: GPL-2.0-only
"""Builds the command that measures a point again, from the command of the run."""

import shlex

from fscale.analysis import asked
from fscale.model.argv import values
from fscale.model.catalogue import is_path, short_name, split_names
from fscale.model.crew import WORKERS_PER_CPU
from fscale.model.results import CellKey, Run

# Options that the point determines, and the output directory.
_POINT_OPTIONS = (
    "--output",
    "--fs",
    "--workload",
    "--cores",
    "--media",
    "--mode",
    "--jobs",
    "--partitions",
    "--option",
)
_SIDES = "ab"  # the command whose sides name their file systems


def command(run: Run, key: CellKey, medium: bool = False) -> str | None:
    """The command without the core count, which comes last; None if the run has no usable command.

    `medium` says that the run has several media or modes.
    """
    words = asked.words(run)
    if words[:1] not in (["bin/fscale"], ["fscale"]):
        return None
    argv = _without(words, _POINT_OPTIONS)
    argv += ["--output", "results/again", "--workload", _load(words, key.workload)]
    if _SIDES not in words[1:2]:
        argv += ["--fs", asked.filesystem(run, key.filesystem)]
    if medium:
        argv += [
            "--mode",
            key.mode,
            *(["--media", key.medium] if key.medium != "none" else []),
        ]
    for name, value in sorted(key.options.items()):
        argv += ["--option", f"{key.workload}.{name}={value}"]
    if isinstance(run.suite.get(WORKERS_PER_CPU), list):
        argv = [
            *_without_setting(argv, WORKERS_PER_CPU),
            *("--set", f"{WORKERS_PER_CPU}={key.workers_per_cpu}"),
        ]
    return f"{shlex.join(argv)} --cores "


def _load(words: list[str], name: str) -> str:
    """The name, or the path of the TOML file by which the run named that load."""
    named = [one for text in values(words, "--workload") for one in split_names(text)]
    return next((one for one in named if is_path(one) and short_name(one) == name), name)


def _without(words: list[str], options: tuple[str, ...]) -> list[str]:
    remaining: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif word.partition("=")[0] not in options:
            remaining.append(word)
    return remaining


def _without_setting(words: list[str], key: str) -> list[str]:
    remaining: list[str] = []
    for word in words:
        if not word.removeprefix("--set=").startswith(f"{key}="):
            remaining.append(word)
        elif remaining[-1:] == ["--set"]:
            remaining.pop()
    return remaining
