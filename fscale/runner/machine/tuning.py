# SPDX-License-Identifier: GPL-2.0-only
"""Reads the settings of the machine that affect figures, from turbo to writeback sysctls."""

import platform
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from fscale.model.results import Tuning
from fscale.runner.machine import kernel, lsm
from fscale.system.sysfs import text

_SYSCTLS = (
    "fs/dirtytime_expire_seconds",
    "kernel/nmi_watchdog",
    "kernel/randomize_va_space",
    "kernel/timer_migration",
    "kernel/watchdog",
    "kernel/watchdog_thresh",
    "vm/compaction_proactiveness",
    "vm/dirty_background_bytes",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_ratio",
    "vm/dirty_writeback_centisecs",
    "vm/dirtytime_expire_seconds",
    "vm/laptop_mode",
    "vm/min_free_kbytes",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/page-cluster",
    "vm/swappiness",
    "vm/vfs_cache_pressure",
    "vm/watermark_boost_factor",
    "vm/watermark_scale_factor",
    "vm/zone_reclaim_mode",
)
_MODELS = {
    "PREEMPT_NONE": "none",
    "PREEMPT_VOLUNTARY": "voluntary",
    "PREEMPT_LAZY": "lazy",
    "PREEMPT": "full",
}


def _chosen(path: Path, brackets: str = "[]") -> str | None:
    """Return the word in brackets: `madvise` of `always [madvise] never`; None without one."""
    left, right = (re.escape(bracket) for bracket in brackets)
    match = re.search(rf"{left}(\w+){right}", text(path) or "")
    return match[1] if match else None


def _turbo(cpus: Path) -> bool | None:
    off = text(cpus / "intel_pstate" / "no_turbo")
    if off is not None:
        return off == "0"
    boost = text(cpus / "cpufreq" / "boost")
    return None if boost is None else boost == "1"


def _idle_states(cpus: Path) -> dict[str, bool]:
    states: dict[str, bool] = {}
    for path in sorted(cpus.glob("cpu[0-9]*/cpuidle/state*")):
        name = text(path / "name")
        if name is not None:
            states[name] = states.get(name, True) and text(path / "disable") != "1"
    return states


def _preemption(root: Path) -> tuple[str | None, str]:
    """Return the preemption model and its source.

    A kernel with PREEMPT_DYNAMIC can be switched at any time, and only debugfs shows the current
    model. The command line and the configuration show the model at boot.
    """
    version = (text(root / "proc/sys/kernel/version") or "").split()
    now = _chosen(root / "sys/kernel/debug/sched/preempt", "()")
    if now:
        return f"rt, {now}" if "PREEMPT_RT" in version else now, "/sys/kernel/debug/sched/preempt"
    for word, model in (("PREEMPT_RT", "rt"), ("PREEMPT_LAZY", "lazy")):
        if word in version:
            return model, "uname -v"
    dynamic = "PREEMPT_DYNAMIC" in version
    if dynamic and (given := _given(root, "preempt", _MODELS.values())):
        return given, "kernel command line"
    options, source = kernel.enabled_options(root, platform.release()) or (set(), "")
    for name, model in _MODELS.items():
        if name in options:
            return model, source
    if "PREEMPT" in version and not _may_be_lazy(platform.release()):
        return "full", "uname -v"
    return None, "PREEMPT_DYNAMIC, and no debugfs" if dynamic else "nothing says it"


def _may_be_lazy(release: str) -> bool:
    """Return whether a kernel may have lazy preemption: since 6.13, or of unknown version."""
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= (6, 13)


def _given(root: Path, name: str, known: Collection[str] | None = None) -> str | None:
    """Return the last value of NAME=VALUE on the kernel's command line that is in `known`."""
    words = (text(root / "proc/cmdline") or "").split()
    values = (w.partition("=")[2] for w in reversed(words) if w.startswith(f"{name}="))
    return next((value for value in values if known is None or value in known), None)


def _sysctls(root: Path) -> dict[str, str]:
    """Return sysctl -> value, by their usual dotted names; skip those that this kernel lacks."""
    base = root / "proc/sys"
    names = [*_SYSCTLS, *(f"kernel/{path.name}" for path in base.glob("kernel/sched_*"))]
    values = {name: text(base / name) for name in sorted(names)}
    return {
        name.replace("/", ".", 1): " ".join(value.split())
        for name, value in values.items()
        if value is not None
    }


def _joined(paths: Iterable[Path]) -> str | None:
    """Join the values of several files, each distinct value once; None if there are none."""
    return ",".join(sorted({value for path in paths if (value := text(path))})) or None


def _cpu_list(path: Path) -> str | None:
    """Read a list of CPUs; an empty list is `(null)` on some kernels. None if unreadable."""
    value = text(path)
    return None if value is None else value.strip("()").replace("null", "")


def _runs(root: Path, program: str) -> bool:
    return any(text(path) == program for path in (root / "proc").glob("[0-9]*/comm"))


def read(root: Path = Path("/")) -> Tuning:
    """Read the present settings; `root` is the directory with /proc and /sys."""
    cpus, mm = root / "sys/devices/system/cpu", root / "sys/kernel/mm"
    huge, modules = mm / "transparent_hugepage", root / "sys/module"
    idle = cpus / "cpuidle"
    preempt, preempt_from = _preemption(root)
    features = text(root / "sys/kernel/debug/sched/features")
    return Tuning(
        turbo=_turbo(cpus),
        idle_driver=text(idle / "current_driver"),
        idle_governor=text(idle / "current_governor") or text(idle / "current_governor_ro"),
        idle_states=_idle_states(cpus),
        numa_balancing=text(root / "proc/sys/kernel/numa_balancing"),
        huge_pages=_chosen(huge / "enabled"),
        shmem_huge_pages=_chosen(huge / "shmem_enabled"),
        preempt=preempt,
        preempt_from=preempt_from,
        sched_features=" ".join(features.split()) if features else None,
        lsms=lsm.names(root),
        lsm_state=lsm.state(root),
        sysctls=_sysctls(root),
        frequency_driver=_joined(cpus.glob("cpu[0-9]*/cpufreq/scaling_driver")),
        energy_preference=_joined(cpus.glob("cpu[0-9]*/cpufreq/energy_performance_preference")),
        energy_bias=_joined(cpus.glob("cpu[0-9]*/power/energy_perf_bias")),
        irq_affinity=text(root / "proc/irq/default_smp_affinity"),
        irqbalance=_runs(root, "irqbalance"),
        isolated_cpus=_cpu_list(cpus / "isolated"),
        nohz_full_cpus=_cpu_list(cpus / "nohz_full"),
        rcu_nocbs_cpus=_given(root, "rcu_nocbs"),
        workqueue_scope=text(modules / "workqueue/parameters/default_affinity_scope"),
        clocksource=text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        timer_slack_ns=text(root / "proc/self/timerslack_ns"),
        same_page_merging=text(mm / "ksm/run"),
        multi_generation_lru=text(mm / "lru_gen/enabled"),
        zswap=text(modules / "zswap/parameters/enabled"),
    )
