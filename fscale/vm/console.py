# SPDX-License-Identifier: GPL-2.0-only
"""Reads from a guest's console log how the guest ended."""

import re
from dataclasses import dataclass
from typing import Literal

from fscale.model.files import strip_escapes

Trouble = Literal["panic", "oom"]

# The first lines of kernel reports that include a stack.
START = re.compile(
    r"BUG: |Oops: |Kernel panic - not syncing|kernel BUG at |general protection fault|"
    r"Unable to handle kernel|divide error: |WARNING: CPU: |watchdog: BUG|INFO: task .* blocked|"
    r"rcu: INFO: |invoked oom-killer|Out of memory: Killed process|Kernel BUG|"
    # lockdep (kernel/locking/lockdep.c, kernel/rcu/update.c)
    r"WARNING: (?:possible |inconsistent |suspicious |nested |bad unlock|held lock|lock held)|"
    r"INFO: trying to register non-static key|turning off the locking correctness"
)
FATAL = re.compile(r"Kernel panic - not syncing")
OOM = re.compile(r"Out of memory: Killed process \d+ \(([^)]*)\)|Out of memory and no killable")
END = re.compile(r"---\[ end (trace|Kernel panic)|Rebooting in|reboot: |Out of memory")
LONGEST = 200
# The kinds of these reports; the first that matches is the kind.
_KINDS = (
    ("a panic", re.compile(r"Kernel panic")),
    ("an out-of-memory kill", re.compile(r"oom-killer|Out of memory")),
    ("a stall", re.compile(r"watchdog: BUG|INFO: task .* blocked|rcu: INFO")),
    ("a lockdep report", re.compile(r"WARNING: (?!CPU)|INFO: trying to register|turning off")),
    ("a warning", re.compile(r"WARNING: CPU")),
    ("an oops", re.compile(r"")),
)


@dataclass(frozen=True)
class KernelReport:
    """The fatal problem, if any, and the kernel's first report in full."""

    trouble: Trouble | None
    summary: str | None
    report: str | None


def kind_of(summary: str) -> str:
    """What a report is, by its first line: "a warning", "an oops", "a lockdep report"."""
    return next(kind for kind, pattern in _KINDS if pattern.search(summary))


def judge(log: str) -> KernelReport:
    """Read a console log; the report is the first oops, panic or OOM kill with its stack."""
    lines = strip_escapes(log).splitlines()
    first = next((i for i, line in enumerate(lines) if START.search(line)), None)
    if first is None:
        return KernelReport(None, None, None)
    report = []
    for line in lines[first : first + LONGEST]:
        report.append(line)
        if END.search(line):
            break
    trouble: Trouble | None = None
    text = "\n".join(lines)
    if OOM.search(text):
        trouble = "oom"
    elif FATAL.search(text):
        trouble = "panic"
    summary = re.sub(r"^\[ *[\d.]+\](\[[^]]*\])? *", "", lines[first]).strip()
    return KernelReport(trouble, summary, "\n".join(report))
