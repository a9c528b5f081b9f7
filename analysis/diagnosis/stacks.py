# SPDX-License-Identifier: GPL-2.0-only
"""Kernel stacks, leaf first: clean names, lock primitives, and their callers."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

# The offset in a function, and suffixes of compiler clones.
_OFFSET = re.compile(r"\+(0x[0-9a-f]+|\d+)(/0x[0-9a-f]+)?$")
_CLONE = re.compile(r"\.(constprop|isra|part|cold|llvm)(\.\d+)?")

# Functions that take (or release) a lock; the frames after them are the callers.
_PRIMITIVE = re.compile(
    r"(__pv_|native_)?queued_(spin|read|write)_lock_slowpath|__?pv_wait.*"
    r"|_?_?_?raw_(spin|read|write)_(un)?lock.*|(spin|read|write)_(un)?lock.*"
    r"|rwsem_(down_(read|write)_slowpath|optimistic_spin|spin_on_owner|can_spin_on_owner"
    r"|try_write_lock.*|read_trylock)"
    r"|__?down(_common|_interruptible|_killable|_timeout|_trylock)?|down(_interruptible|_killable)?"
    r"|__down_(read|write).*|down_(read|write).*|up_(read|write)|up"
    r"|__mutex_lock.*|mutex_lock.*|mutex_(optimistic_spin|spin_on_owner|unlock)|ww_mutex_lock.*"
    r"|osq_(lock|unlock)|percpu_(down|up)_(read|write).*|__percpu_(down|up)_.*|percpu_rwsem_wait.*"
    r"|(__)?rt_(mutex|spin|read|write)_.*|rtlock_.*|rwbase_.*"
    r"|__traceiter_.*|trace_event_.*|bpf_.*|__bpf_.*"
)
_SPINNING = re.compile(
    r"(__pv_|native_)?queued_(spin|read|write)_lock_slowpath|osq_lock|rwsem_optimistic_spin"
    r"|rwsem_spin_on_owner|rwsem_down_(read|write)_slowpath|mutex_optimistic_spin"
    r"|mutex_spin_on_owner|__mutex_lock.*"
)
# Functions that put a thread to sleep.
_SLEEPING = re.compile(
    r"__schedule|schedule|preempt_schedule.*|io_schedule.*|schedule_(timeout|hrtimeout).*"
    r"|schedule_preempt_disabled|__cond_resched.*|bit_wait.*|__wait_on_bit.*|out_of_line_wait_on_bit.*"
    r"|wait_for_completion.*|__wait_for_common|do_wait_for_common|io_schedule_timeout"
    r"|folio_wait_bit(_common|_killable)?|wait_on_bit.*|prepare_to_wait.*|__bpf_.*|bpf_.*"
    r"|__traceiter_.*|trace_event_.*|context_switch|blk_wait_io"
)
_INTERRUPT = re.compile(r"asm_(sysvec|common_interrupt|exc_nmi|spurious).*|(irq|el1h_64_irq).*")


@lru_cache(maxsize=1 << 16)
def clean(frame: str) -> str:
    """`rwsem_wake.isra.0+111` -> `rwsem_wake`; a bare address stays."""
    name = frame.strip()
    return _CLONE.sub("", _OFFSET.sub("", name)) or "?"


@lru_cache(maxsize=1 << 16)
def is_primitive(frame: str) -> bool:
    """Whether the function is a lock primitive."""
    return _PRIMITIVE.fullmatch(frame) is not None


@lru_cache(maxsize=1 << 16)
def is_spinning(frame: str) -> bool:
    """Whether CPU time in the function is waiting for a lock."""
    return _SPINNING.fullmatch(frame) is not None


@lru_cache(maxsize=1 << 16)
def _is_sleeping(frame: str) -> bool:
    return _SLEEPING.fullmatch(frame) is not None


@lru_cache(maxsize=1 << 16)
def _is_interrupt(frame: str) -> bool:
    return _INTERRUPT.fullmatch(frame) is not None


def in_interrupt(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The frames of an interrupt handler without those of the thread; all if there is none."""
    for index, frame in enumerate(frames):
        if _is_interrupt(frame):
            return frames[:index]
    return frames


def without_interrupt(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The frames of the interrupted thread."""
    for index in range(len(frames) - 1, -1, -1):
        if _is_interrupt(frames[index]):
            return frames[index + 1 :]
    return frames


def callers(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The frames from the caller of the lock primitive on."""
    for index, frame in enumerate(frames):
        if not is_primitive(frame):
            return frames[index:]
    return ()


def nameless(times: Iterable[Mapping[tuple[str, ...], int]]) -> float:
    """The share of the time (by stack) in stacks of addresses, without a single symbol."""
    total = without = 0
    for frames, spent in ((f, n) for time in times for f, n in time.items() if f):
        total += spent
        without += spent if all(frame.startswith("0x") for frame in frames) else 0
    return without / total if total else 0.0


def sleepers(frames: tuple[str, ...]) -> tuple[str, ...]:
    """The frames starting at the function that decided to sleep."""
    for index, frame in enumerate(frames):
        if not _is_sleeping(frame):
            return frames[index:]
    return ()


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> tuple[str, ...]:
    """Parse a stack as bpftrace prints it, one frame per line."""
    return tuple(clean(line) for line in text.splitlines() if line.strip())
