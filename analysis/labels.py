# SPDX-License-Identifier: GPL-2.0-only
"""Short names of several runs, built from the facts that differ between them."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from fscale.analysis.reader import Results
from fscale.model import crew
from fscale.model.files import printable
from fscale.model.results import UNKNOWN, Run

MOST = 40  # characters that fit into a legend
DEFAULT = "default options"
USUAL_CREW = "1 worker per CPU, packed"

Item = TypeVar("Item")

_BUILD = re.compile(r"#\d+")
_WORDS = re.compile(r"(?=[-+ ])")


def _kernel(run: Run) -> str:
    """The kernel; of an imported run that does not tell it, the program."""
    kernel = run.machine.kernel
    return kernel if kernel != UNKNOWN else str(run.suite.get("name", UNKNOWN))


def _build(run: Run) -> str:
    match = _BUILD.search(run.machine.build.version) if run.machine.build else None
    return match.group() if match else ""


def _guest(run: Run) -> str:
    return str((run.machine.guest or {}).get("label") or "")


def _options_of(described: object) -> list[str]:
    """Mount options and mkfs arguments of a file system, without program and device."""
    if not isinstance(described, dict):
        return []
    mount, mkfs = described.get("mount_options"), described.get("mkfs")
    words = list(mount) if isinstance(mount, list) else []
    words += mkfs[1:] if isinstance(mkfs, list) else []
    return [str(word) for word in words if word != "{device}"]


def _options(runs: Sequence[Run]) -> list[str]:
    """For file systems that all runs have, each run's options that not all runs share."""
    shared = [name for name in runs[0].filesystems if all(name in r.filesystems for r in runs)]
    differing: list[list[str]] = [[] for _ in runs]
    for name in shared:
        words = unshared([_options_of(run.filesystems[name]) for run in runs])
        differing = [[*known, *found] for known, found in zip(differing, words, strict=True)]
    if not any(differing):
        return ["" for _ in runs]
    return [" ".join(dict.fromkeys(differing_words)) or DEFAULT for differing_words in differing]


def unshared(lists: Sequence[Sequence[Item]]) -> list[list[Item]]:
    """The items of each list that are not in all of them."""
    return [[item for item in one if not all(item in other for other in lists)] for one in lists]


def _each(fact: Callable[[Run], str]) -> Callable[[Sequence[Run]], list[str]]:
    return lambda runs: [fact(run) for run in runs]


def _crew(runs: Sequence[Run]) -> list[str]:
    """Workers per CPU, placement and CPUs kept free, if the runs differ in them."""
    names = [crew.words(run) for run in runs]
    return [name or USUAL_CREW for name in names] if any(names) else names


FACTS: tuple[Callable[[Sequence[Run]], list[str]], ...] = (
    _each(_kernel),
    _each(_build),
    _each(lambda run: run.machine.kind),
    _each(_guest),
    _each(lambda run: run.machine.hostname),
    _options,
    _crew,
    _each(lambda run: " ".join(run.filesystems)),
)
"""facts that may tell runs apart, the most informative first"""


def labels(opened: Sequence[Results], given: Sequence[str | None]) -> list[str]:
    """A label for each run: the user's if there is one, else the facts that differ.

    A fact is used only if it tells runs apart that earlier facts did not. The order is: kernel, its
    build, kind of machine, guest, host, options of file systems, workers and placement,
    file systems, name of the directory, time. Labels that are still equal get numbers.
    """
    unlabelled = [i for i, label in enumerate(given) if label is None]
    runs = [opened[i].run for i in unlabelled]
    built: list[tuple[str, ...]] = [() for _ in unlabelled]
    facts = [fact(runs) for fact in FACTS if runs]
    facts.append([opened[i].path.resolve().name for i in unlabelled])
    facts.append([run.started for run in runs])
    for values in facts:
        more = [(*m, v) for m, v in zip(built, _short(values), strict=True)]
        if len(set(more)) > len(set(built)):
            built = more
    result = list(given)
    taken = [label for label in given if label is not None]
    for i, parts in zip(unlabelled, built, strict=True):
        text = _shorten(parts) or opened[i].path.resolve().name
        taken.append(_make_unique(text, taken))
        result[i] = taken[-1]
    return [str(label) for label in result]


def _short(values: list[str]) -> list[str]:
    """The values in printable form, without a common ending such as -amd64."""
    words = [_WORDS.split(printable(value)) for value in values]
    while len(set(values)) > 1 and all(len(parts) > 1 for parts in words):
        if len({parts[-1] for parts in words}) > 1:
            break
        for parts in words:
            parts.pop()
    return ["".join(parts).strip() for parts in words]


def _shorten(parts: Sequence[str]) -> str:
    # A curve is named FILESYSTEM (RUN).
    text = " ".join(filter(None, parts)).replace("(", "[").replace(")", "]")
    return text if len(text) <= MOST else text[: MOST - 1] + "\u2026"


def _make_unique(label: str, taken: Sequence[str]) -> str:
    numbers = (f"{label} {n}" for n in range(2, len(taken) + 2))
    return next(name for name in (label, *numbers) if name not in taken)
