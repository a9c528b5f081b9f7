# SPDX-License-Identifier: GPL-2.0-only
"""Reads fio job files, refuses what a cell cannot honour, and fills in what the cell decides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fscale.model.errors import FscaleError

GLOBAL = "global"
# What the cell decides instead, so a job file may hold it.
_REPLACED = ("runtime", "timeout", "time_based", "randseed", "group_reporting", "ramp_time")
_OWN_PLACE = "fscale gives each job the directory of the file system under test"
_CPUS = "fscale binds all jobs to the CPUs under test"
_ENDS = "it would end the load before its window does"
_ALONE = "all jobs of a file run at once, for the whole window; write one file per stage"
# Key -> why a cell cannot honour it.
_REFUSED = {
    "directory": _OWN_PLACE,
    "opendir": _OWN_PLACE,
    "chroot": _OWN_PLACE,
    "include": "write its lines into the job file, so that the results contain the whole load",
    "read_iolog": "a recorded log names its own files",
    "replay_redirect": _OWN_PLACE,
    "merge_blktrace_file": _OWN_PLACE,
    "profile": "it replaces the jobs of the file; write them out",
    "fill_device": _ENDS,
    "fill_fs": _ENDS,
    "steadystate": _ENDS,
    "ss": _ENDS,
    "steadystate_duration": _ENDS,
    "ss_dur": _ENDS,
    "steadystate_ramp_time": _ENDS,
    "ss_ramp": _ENDS,
    "cpus_allowed": _CPUS,
    "cpus_allowed_policy": _CPUS,
    "cpumask": _CPUS,
    "numa_cpu_nodes": _CPUS,
    "numa_mem_policy": "choose it for the medium, with numa in its TOML file",
    "cgroup": "fscale makes a cgroup for each cell",
    "cgroup_weight": "fscale makes a cgroup for each cell",
    "uid": "set user in the TOML file",
    "gid": "set user in the TOML file",
    "ioscheduler": "it would change the device for all; set it with --fs FS:set=FILE=VALUE",
    "exec_prerun": "use a load with [command] and setup",
    "exec_postrun": "use a load with [command]",
    "stonewall": _ALONE,
    "wait_for_previous": _ALONE,
    "wait_for": _ALONE,
    "startdelay": _ALONE,
    "exitall": _ALONE,
    "exitall_on_error": _ALONE,
    "create_only": "fscale writes the files before the timed window by itself",
}
_FALSE = ("0", "false", "no")
# Keys that may be switched off: then they ask for nothing.
_SWITCHES = ("exitall", "create_only", "stonewall", "wait_for_previous", "fill_device", "fill_fs")
# Pattern of keys, pattern in their values -> why a cell cannot honour these values.
_OFF = f"^({'|'.join(_FALSE)})$"
_REFUSED_VALUES = (
    ("filename", "[/:]", f"{_OWN_PLACE}; give file names without a directory, one per job"),
    ("filename_format", r"^/|(^|/)\.\.(/|$)", f"{_OWN_PLACE}; give a relative format"),
    ("mem|iomem", "/", f"{_OWN_PLACE}; give a kind of memory without a file"),
    (
        "write_.*log",
        "/",
        "logs go to the directory under test; give a name without a directory",
    ),
    ("time_based", _OFF, "the suite sets the length of a cell"),
    ("stats", _OFF, "fscale counts what all jobs do"),
)


@dataclass
class JobSection:
    """A section of a job file: its name, and its keys in order."""

    name: str
    keys: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Jobs:
    """A job file that a cell can run."""

    sections: list[JobSection]

    @property
    def names(self) -> list[str]:
        """The names of its jobs."""
        return [section.name for section in self.sections if section.name != GLOBAL]

    def values(self, key: str) -> dict[str, str | None]:
        """Job -> value of a key, from the job itself or the `global` sections before it."""
        values, general = {}, None
        for section in self.sections:
            given = [value or "1" for name, value in section.keys if name == key]
            if section.name == GLOBAL:
                general = given[-1] if given else general
            else:
                values[section.name] = given[-1] if given else general
        return values

    @property
    def direct(self) -> bool:
        """Whether all its jobs bypass the page cache."""
        direct, buffered = (self.values(key) for key in ("direct", "buffered"))
        return all(
            (direct[job] not in (None, *_FALSE)) or (buffered[job] in _FALSE) for job in self.names
        )

    def counted(self, per_core: Mapping[str, float]) -> bool:
        """Whether the processes of all its jobs grow with the number of cores."""
        numjobs = self.values("numjobs")
        return all(numjobs[name] is None or name in per_core for name in self.names)

    def filled(
        self, decided: Mapping[str, str], per_core: Mapping[str, float], workers: int
    ) -> str:
        """The text for fio: what the cell decides comes first; each job has its number.

        `decided` has fio's keys; `per_core` is of `loadfile.FioJob`; `workers` are the cores times
        the workers on each.
        """
        numjobs = self.values("numjobs")
        lines = [f"[{GLOBAL}]", *(f"{key}={value}" for key, value in decided.items())]
        for section in self.sections:
            lines.append(f"[{section.name}]")
            counted = section.name in per_core
            lines += [
                key if value is None else f"{key}={value}"
                for key, value in section.keys
                if key not in _REPLACED and not (counted and key == "numjobs")
            ]
            if section.name == GLOBAL or (numjobs[section.name] is not None and not counted):
                continue
            lines.append(f"numjobs={max(1, round(per_core.get(section.name, 1) * workers))}")
        return "\n".join([*lines, ""])


def read(text: str, name: str) -> Jobs:
    """Read a job file.

    Raises:
        FscaleError: it has no job, a line is none of a job file, or a key asks what a cell cannot
            honour; the text names the line.
    """
    sections: list[JobSection] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.split("[;#]", raw, maxsplit=1)[0].strip()  # as fio does, even within quotes
        if not line:
            continue
        if match := re.fullmatch(r"\[(.+)\]", line):
            sections.append(JobSection(match[1]))
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not sections:
            raise FscaleError(f"{name}:{number}: {line!r} stands before the first [section]")
        if reason := _why_not(key.split()[0] if key else key, value):
            raise FscaleError(f"{name}:{number}: fscale cannot honour {line}: {reason}")
        sections[-1].keys.append((key, value if equals else None))
    jobs = Jobs(sections)
    if not jobs.names:
        raise FscaleError(f"{name} has no job; add a section such as [writer]")
    if twice := {one for one in jobs.names if jobs.names.count(one) > 1}:
        raise FscaleError(f"{name}: two jobs are called {min(twice)}; give each another name")
    return jobs


def check_per_core(jobs: Jobs, per_core: Mapping[str, float], name: str) -> None:
    """Check that `per_core` names jobs of the file only.

    Raises:
        FscaleError: it does not.
    """
    if unknown := [one for one in per_core if one not in jobs.names]:
        raise FscaleError(
            f"{name}: per_core names the job {unknown[0]}, which is not in the job file; its jobs "
            f"are {', '.join(jobs.names)}"
        )


def _why_not(key: str, value: str) -> str | None:
    if key in _REFUSED and not (key in _SWITCHES and value in _FALSE):
        return _REFUSED[key]
    for keys, values, reason in _REFUSED_VALUES:
        if re.fullmatch(keys, key) and re.search(values, value):
            return reason
    return None
