# SPDX-License-Identifier: GPL-2.0-only
"""Mount options: merging those that say otherwise, and whether the kernel did as it was asked."""

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
"""options that mean the other value of their group"""
_BARE = {"discard": "sync", "dax": "always"}
"""the value that a group's name alone stands for; of others the kernel shows the one it chose"""
_OFF = frozenset({"0", "no", "none", "never", "off"})
_NO_CHANGE = frozenset(
    {
        *("defaults", "rw", "suid", "dev", "exec", "async", "diratime", "barrier", "barrier=1"),
        *("acl", "datacow", "datasum", "treelog", "auto", "user", "users", "owner", "_netdev"),
    }
)
"""what is so without them, or is for mount(8) alone"""
_SEVERAL = frozenset({"device"})
"""options that may be given several times"""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE = re.compile(r"(\d+)([kmg]?)", re.IGNORECASE)
_OPTION = re.compile(r'(?:"[^"]*"|[^,"])+')


def split(text: str) -> list[str]:
    """The options of a text with commas; in quotes (`context="a,b"`) a comma does not part."""
    return _OPTION.findall(text)


def group(option: str) -> str:
    """The name of what an option sets: `data=journal` data, `nobarrier` and `barrier=1` barrier."""
    name = option.partition("=")[0]
    if name in _SAME:
        return _SAME[name]
    return re.sub(r"^no_?(?=..)", "", name)


def merge(options: Sequence[str], more: Sequence[str] = ()) -> list[str]:
    """Both, without what a later one says otherwise.

    util-linux and the kernel do not take the last one themselves: `noatime,relatime` is noatime.
    """
    both = list(dict.fromkeys([*options, *more]))
    last = {group(option): option for option in [*options, *more]}
    return [o for o in both if group(o) in _SEVERAL or last[group(o)] == o]


def without_effect(asked: Iterable[str], effective: Iterable[str]) -> list[str]:
    """Those of `asked` that the kernel shows otherwise in its `effective` options.

    Of what it does not show at all nothing is said: some defaults it never prints.
    """
    shown: dict[str, list[str]] = {}
    for option in effective:
        shown.setdefault(group(option), []).append(option)
    return [option for option in asked if not _holds(option, shown.get(group(option), []))]


def unseen(asked: Iterable[str], effective: Iterable[str]) -> set[str]:
    """Those of `asked` that the kernel does not show, and that are no defaults of all."""
    shown = {group(option) for option in effective}
    return {o for o in asked if group(o) not in shown and o not in _NO_CHANGE} - {
        o for o in asked if o.startswith(("no", "x-"))
    }


def _holds(option: str, shown: Sequence[str]) -> bool:
    if group(option) == "atime":
        return _atime_holds(option, shown)
    if not shown or _incomparable(option):
        return True
    wanted, found = _meaning(option), [_meaning(one) for one in shown]
    if wanted in found:
        return True
    return "=" not in option and wanted[1] == "1" and any(one[1] not in _OFF for one in found)


def _incomparable(option: str) -> bool:
    """Whether the kernel shows in another unit, or as its default, what the option asks for."""
    return option.endswith("%") or option.startswith("nr_blocks=") or option == "commit=0"


def _atime_holds(option: str, shown: Sequence[str]) -> bool:
    """Of these the kernel shows noatime and relatime, and strictatime by neither of both."""
    if option == "noatime":
        return "noatime" in shown
    if option in ("relatime", "atime"):
        return "relatime" in shown
    if option == "nostrictatime":
        return bool(shown)
    return "relatime" not in shown and (option == "norelatime" or "noatime" not in shown)


def _meaning(option: str) -> tuple[str, str]:
    """An option in one spelling: `nobarrier` is `barrier=0`, 64k is 65536, zstd:3 is zstd."""
    name, _, value = option.partition("=")
    kind = group(option)
    if not value:
        if name != kind and name not in _SAME:
            return kind, "0"
        return kind, "0" if name in _OTHER else _BARE.get(kind, "1")
    if size := _SIZE.fullmatch(value):
        return kind, str(int(size[1]) * _UNITS[size[2].lower()])
    return kind, value.partition(":")[0]
