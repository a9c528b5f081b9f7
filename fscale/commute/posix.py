# SPDX-License-Identifier: GPL-2.0-only
"""What 18 POSIX calls do to the state of the model, and what they return.

Files are read and written in whole pages. A pipe has both of its ends open elsewhere, and does not
block. Inode numbers, and the descriptor of an open with `anyfd`, are names that the call gives:
any number is as good. Times are not modelled: how finely they are kept is left to a system.
"""

from collections.abc import Callable

from fscale.commute.choices import OutsideModel
from fscale.commute.states import DESCRIPTORS, PAGES, Value, World

Path = tuple[int, int]
Result = tuple[Value, ...]

DONE: Result = ("ok",)


def _error(name: str) -> Result:
    return (name,)


def _lowest(world: World, process: int) -> int:
    for number in range(DESCRIPTORS):
        if not world.get("open", process, number):
            return number
    raise OutsideModel


def _install(world: World, process: int, number: int | str, file: Value) -> None:
    world.put(True, "open", process, number)
    world.put(file, "file", process, number)
    world.put(0, "offset", process, number)


def _file(world: World, process: int, number: int) -> Value:
    """What a descriptor is open for; None if it is not."""
    return world.get("file", process, number) if world.get("open", process, number) else None


def _store(world: World, inode: int, page: int, value: int) -> None:
    if page >= PAGES:
        raise OutsideModel
    length = world.get("length", inode)
    for hole in range(length, page):
        world.put(0, "page", inode, hole)
    world.put(value, "page", inode, page)
    if page >= length:
        world.put(page + 1, "length", inode)


def _load(world: World, inode: int, page: int) -> Result | None:
    """A page of a file; None beyond its end."""
    return ("value", world.peek("page", inode, page)) if page < world.get("length", inode) else None


def _attributes(world: World, inode: int) -> Result:
    return ("stat", inode, world.get("links", inode), world.peek("length", inode))


def _add_links(world: World, inode: int, links: int) -> None:
    world.put(world.get("links", inode) + links, "links", inode)


def _open(world: World, process: int, path: Path, flags: tuple[str, ...]) -> Result:
    inode = world.get("name", *path)
    if inode is None:
        if "creat" not in flags:
            return _error("ENOENT")
        inode = world.step
        world.put(inode, "name", *path)
        world.put(1, "links", inode)
        world.put(0, "length", inode)
    elif "excl" in flags:
        return _error("EEXIST")
    elif "trunc" in flags:
        world.put(0, "length", inode)
    number = world.step if "anyfd" in flags else _lowest(world, process)
    _install(world, process, number, ("inode", inode))
    return ("fd", number)


def _link(world: World, process: int, old: Path, new: Path) -> Result:
    inode = world.get("name", *old)
    if inode is None:
        return _error("ENOENT")
    if world.get("name", *new) is not None:
        return _error("EEXIST")
    world.put(inode, "name", *new)
    _add_links(world, inode, 1)
    return DONE


def _unlink(world: World, process: int, path: Path) -> Result:
    inode = world.get("name", *path)
    if inode is None:
        return _error("ENOENT")
    world.put(None, "name", *path)
    _add_links(world, inode, -1)
    return DONE


def _rename(world: World, process: int, old: Path, new: Path) -> Result:
    inode = world.get("name", *old)
    if inode is None:
        return _error("ENOENT")
    replaced = world.get("name", *new)
    if replaced == inode:  # also where both are links to one file
        return DONE
    if replaced is not None:
        _add_links(world, replaced, -1)
    world.put(inode, "name", *new)
    world.put(None, "name", *old)
    return DONE


def _stat(world: World, process: int, path: Path) -> Result:
    inode = world.get("name", *path)
    return _error("ENOENT") if inode is None else _attributes(world, inode)


def _fstat(world: World, process: int, number: int) -> Result:
    file = _file(world, process, number)
    if file is None:
        return _error("EBADF")
    return _attributes(world, file[1]) if file[0] == "inode" else ("pipe", f"p{file[1]}")


def _lseek(world: World, process: int, number: int, whence: str, pages: int) -> Result:
    file = _file(world, process, number)
    if file is None:
        return _error("EBADF")
    if file[0] == "pipe":
        return _error("ESPIPE")
    offset = pages
    if whence == "cur":
        offset += world.get("offset", process, number)
    elif whence == "end":
        offset += world.get("length", file[1])
    if offset > PAGES:
        raise OutsideModel
    world.put(offset, "offset", process, number)
    return ("offset", offset)


def _close(world: World, process: int, number: int) -> Result:
    if _file(world, process, number) is None:
        return _error("EBADF")
    world.put(False, "open", process, number)
    world.put(None, "file", process, number)
    world.put(None, "offset", process, number)
    return DONE


def _pipe(world: World, process: int) -> Result:
    numbers = []
    for end in "rw":
        numbers.append(_lowest(world, process))
        _install(world, process, numbers[-1], ("pipe", world.step, end))
    world.put((), "queue", world.step)
    return ("fds", *numbers)


def _read(world: World, process: int, number: int) -> Result:
    file = _file(world, process, number)
    if file is None or file[2:] == ("w",):
        return _error("EBADF")
    if file[0] == "pipe":
        queue = world.get("queue", file[1])
        if not queue:
            return _error("EAGAIN")
        world.put(queue[1:], "queue", file[1])
        return ("value", queue[0])
    offset = world.get("offset", process, number)
    loaded = _load(world, file[1], offset)
    if loaded is None:
        return ("eof",)
    world.put(offset + 1, "offset", process, number)
    return loaded


def _write(world: World, process: int, number: int, value: int) -> Result:
    file = _file(world, process, number)
    if file is None or file[2:] == ("r",):
        return _error("EBADF")
    if file[0] == "pipe":
        world.put((*world.get("queue", file[1]), value), "queue", file[1])
        return DONE
    offset = world.get("offset", process, number)
    _store(world, file[1], offset, value)
    world.put(offset + 1, "offset", process, number)
    return DONE


def _pread(world: World, process: int, number: int, page: int) -> Result:
    file = _file(world, process, number)
    if file is None:
        return _error("EBADF")
    if file[0] == "pipe":
        return _error("ESPIPE")
    return _load(world, file[1], page) or ("eof",)


def _pwrite(world: World, process: int, number: int, page: int, value: int) -> Result:
    file = _file(world, process, number)
    if file is None:
        return _error("EBADF")
    if file[0] == "pipe":
        return _error("ESPIPE")
    _store(world, file[1], page, value)
    return DONE


def _map(world: World, process: int, address: int, parts: tuple[Value, ...]) -> None:
    names = ("mapped", "memory", "position", "protection", "anonymous")
    for name, value in zip(names, parts, strict=True):
        world.put(value, name, process, address)


def _mmap(world: World, process: int, address: int, protection: str, *file: int) -> Result:
    """`file`: descriptor and page; none for anonymous memory."""
    if not file:
        _map(world, process, address, (True, ("anonymous",), None, protection, 0))
        return DONE
    opened = _file(world, process, file[0])
    if opened is None:
        return _error("EBADF")
    if opened[0] == "pipe":
        # Access is checked before the kind of the file.
        return _error("ENODEV" if protection == opened[2] else "EACCES")
    _map(world, process, address, (True, opened, file[1], protection, None))
    return DONE


def _munmap(world: World, process: int, address: int) -> Result:
    if world.get("mapped", process, address):
        _map(world, process, address, (False, None, None, None, None))
    return DONE


def _mprotect(world: World, process: int, address: int, protection: str) -> Result:
    if not world.get("mapped", process, address):
        return _error("ENOMEM")
    world.put(protection, "protection", process, address)
    return DONE


def _memread(world: World, process: int, address: int) -> Result:
    if not world.get("mapped", process, address):
        return _error("SIGSEGV")
    memory = world.get("memory", process, address)
    if memory[0] == "anonymous":
        return ("value", world.get("anonymous", process, address))
    page = world.get("position", process, address)
    return _load(world, memory[1], page) or _error("SIGBUS")


def _memwrite(world: World, process: int, address: int, value: int) -> Result:
    if not world.get("mapped", process, address):
        return _error("SIGSEGV")
    if world.get("protection", process, address) == "r":
        return _error("SIGSEGV")
    memory = world.get("memory", process, address)
    if memory[0] == "anonymous":
        world.get("anonymous", process, address)  # the first write makes the page
        world.put(value, "anonymous", process, address)
        return DONE
    page = world.get("position", process, address)
    if page >= world.get("length", memory[1]):
        return _error("SIGBUS")
    _store(world, memory[1], page, value)
    return DONE


CALLS: dict[str, Callable[..., Result]] = {
    "open": _open,
    "link": _link,
    "unlink": _unlink,
    "rename": _rename,
    "stat": _stat,
    "fstat": _fstat,
    "lseek": _lseek,
    "close": _close,
    "pipe": _pipe,
    "read": _read,
    "write": _write,
    "pread": _pread,
    "pwrite": _pwrite,
    "mmap": _mmap,
    "munmap": _munmap,
    "mprotect": _mprotect,
    "memread": _memread,
    "memwrite": _memwrite,
}
