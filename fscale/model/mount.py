# SPDX-License-Identifier: GPL-2.0-only
"""Merges mount options, and finds options that had no effect."""

import re
from collections.abc import Iterable, Sequence

ATIME = frozenset({"atime", "noatime", "relatime", "norelatime", "strictatime", "nostrictatime"})
_SAME = {
    **dict.fromkeys(ATIME, "atime"),
    **{
        "async": "sync",
        "ro": "rw",
        "nr_blocks": "size",
        "compress-force": "compress",
        "inode32": "inode64",
    },
    **{"dioread_lock": "dioread_nolock", "uquota": "usrquota", "gquota": "grpquota"},
    **{"pquota": "prjquota", "noload": "recovery", "norecovery": "recovery"},
}
_OTHER = frozenset({"async", "ro", "inode32", "dioread_lock"})
"""options that set the opposite value of their group"""
_BARE = {"discard": "sync", "dax": "always"}
"""the value that a bare option sets; for other options the kernel shows the value it chose"""
_OFF = frozenset({"0", "no", "none", "never", "off"})
_NO_CHANGE = frozenset(
    {
        *("defaults", "rw", "suid", "dev", "exec", "async", "diratime", "barrier", "barrier=1"),
        *("acl", "datacow", "datasum", "treelog", "auto", "user", "users", "owner", "_netdev"),
    }
)
"""options that are the default, or that only mount(8) uses"""
_SEVERAL = frozenset({"device"})
"""options that may be given several times"""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d+)([kmg]?)", re.IGNORECASE)
_OPTION = re.compile(r'(?:"[^"]*"|[^,"])+')


def split(text: str) -> list[str]:
    """Split a text into options at commas, except commas in quotes (`context="a,b"`)."""
    return _OPTION.findall(text)


def group(option: str) -> str:
    """Return what an option sets: `data` of `data=journal`, `barrier` of `nobarrier`."""
    name = option.partition("=")[0]
    if name in _SAME:
        return _SAME[name]
    return re.sub(r"^no_?(?=..)", "", name)


def merge(options: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    """Join two lists of options; of those that set the same thing, keep the last.

    util-linux and the kernel do not always let the last one win: `noatime,relatime` is noatime.
    """
    both = list(dict.fromkeys([*options, *more]))
    last = {group(option): option for option in [*options, *more]}
    return [o for o in both if group(o) in _SEVERAL or last[group(o)] == o]


def without_effect(asked: Iterable[str], effective: Iterable[str]) -> list[str]:
    """Return the options of `asked` that contradict the `effective` options of the kernel.

    An option that the kernel does not show counts as effective, because it hides some defaults.
    """
    shown: dict[str, list[str]] = {}
    for option in effective:
        shown.setdefault(group(option), []).append(option)
    return [option for option in asked if not _holds(option, shown.get(group(option), []))]


def not_shown(asked: Iterable[str], effective: Iterable[str]) -> set[str]:
    """Return the options of `asked` that the kernel does not show and that are not defaults."""
    shown = {group(option) for option in effective}
    return {o for o in asked if group(o) not in shown and o not in _NO_CHANGE} - {
        o for o in asked if o.startswith(("no", "x-"))
    }


def _holds(option: str, shown: Sequence[str]) -> bool:
    if group(option) == "atime":
        return _atime_holds(option, shown)
    if not shown or _incomparable(option):
        return True
    wanted, effective = _meaning(option), [_meaning(one) for one in shown]
    if wanted in effective:
        return True
    return "=" not in option and wanted[1] == "1" and any(one[1] not in _OFF for one in effective)


def _incomparable(option: str) -> bool:
    """Return whether the kernel shows the option in another unit, or as its default."""
    return option.endswith("%") or option.startswith("nr_blocks=") or option == "commit=0"


def _atime_holds(option: str, shown: Sequence[str]) -> bool:
    """Return whether an atime option holds. The kernel shows strictatime by showing no other."""
    if option == "noatime":
        return "noatime" in shown
    if option in ("relatime", "atime"):
        return "relatime" in shown
    if option == "nostrictatime":
        return bool(shown)
    return "relatime" not in shown and (option == "norelatime" or "noatime" not in shown)


def _meaning(option: str) -> tuple[str, str]:
    """Normalise an option: `nobarrier` is `barrier=0`, 64k is 65536, zstd:3 is zstd."""
    name, _, value = option.partition("=")
    kind = group(option)
    if not value:
        if name != kind and name not in _SAME:
            return kind, "0"
        return kind, "0" if name in _OTHER else _BARE.get(kind, "1")
    if size := _SIZE.fullmatch(value):
        return kind, str(int(size[1]) * _UNITS[size[2].lower()])
    return kind, value.partition(":")[0]
