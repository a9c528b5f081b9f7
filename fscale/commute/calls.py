# SPDX-License-Identifier: GPL-2.0-only
"""A call with its arguments, and the choice of these."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fscale.commute.choices import Choices
from fscale.commute.posix import CALLS, Path, Result
from fscale.commute.states import DESCRIPTORS, DIRECTORIES, NAMES, PAGES, VALUES, World

# `excl` has no meaning without `creat`, and leaves nothing for `trunc` to do.
_OPENS = [(), ("creat",), ("creat", "excl"), ("trunc",), ("creat", "trunc")]
_SEEKS = [("set", 0), ("set", 1), ("set", 2), ("cur", 1), ("cur", 0), ("end", 0)]


@dataclass(frozen=True)
class Call:
    """A call of a process."""

    process: int
    name: str
    arguments: tuple[Any, ...]

    def run(self, world: World, step: str) -> Result:
        """Execute it; `step` names what it makes. Raises OutsideModel."""
        world.step = step
        return CALLS[self.name](world, self.process, *self.arguments)

    def words(self) -> list[str]:
        """The name and the arguments as the interpreter reads them."""
        return [self.name, *(_word(argument) for argument in self.arguments)]


def path_text(path: Path) -> str:
    """A path below the directory of the test."""
    return "d{}/n{}".format(*path)


def _word(argument: Any) -> str:
    match argument:
        case ():
            return "-"
        case (int(), int()):
            return path_text(argument)
        case tuple():
            return ",".join(argument)
    return str(argument)


def choose(choices: Choices, name: str, process: int) -> Call:
    """A call with arguments of any kind, up to the names of directories, files and addresses."""

    def path() -> Path:
        directory = choices.symbol("directory", DIRECTORIES)
        return directory, choices.symbol(f"name {directory}", NAMES)

    def descriptor() -> int:
        return choices.pick(DESCRIPTORS)

    def page() -> int:
        return choices.pick(PAGES)

    def value() -> int:
        return 1 + choices.symbol("value", VALUES)

    def address() -> int:
        return choices.symbol(f"address {process}", PAGES)

    def protection() -> str:
        return ("r", "rw")[choices.pick(2)]

    def flags() -> tuple[str, ...]:
        return (*_OPENS[choices.pick(len(_OPENS))], *(["anyfd"] if choices.pick(2) else []))

    def seek() -> tuple[str, int]:
        return _SEEKS[choices.pick(len(_SEEKS))]

    def source() -> tuple[int, ...]:
        return (descriptor(), page()) if choices.pick(2) else ()

    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        "open": lambda: (path(), flags()),
        "link": lambda: (path(), path()),
        "unlink": lambda: (path(),),
        "rename": lambda: (path(), path()),
        "stat": lambda: (path(),),
        "fstat": lambda: (descriptor(),),
        "lseek": lambda: (descriptor(), *seek()),
        "close": lambda: (descriptor(),),
        "pipe": lambda: (),
        "read": lambda: (descriptor(),),
        "write": lambda: (descriptor(), value()),
        "pread": lambda: (descriptor(), page()),
        "pwrite": lambda: (descriptor(), page(), value()),
        "mmap": lambda: (address(), protection(), *source()),
        "munmap": lambda: (address(),),
        "mprotect": lambda: (address(), protection()),
        "memread": lambda: (address(),),
        "memwrite": lambda: (address(), value()),
    }
    return Call(process, name, arguments[name]())
