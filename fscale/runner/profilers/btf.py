# SPDX-License-Identifier: GPL-2.0-only
"""Reads the kernel's type information (BTF): struct sizes, members and their offsets.

Format: Documentation/bpf/btf.rst. This reader exists because those of Debian 12 (bpftool 7.1,
pahole 1.24) fail on the type tags of newer kernels, and may not be installed.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fscale.model.errors import FscaleError

VMLINUX = Path("/sys/kernel/btf/vmlinux")

_MAGIC = 0xEB9F
_HEADER = "HBBIIIII"
_LAYOUT_HEADER = "II"  # offset and length of the layout section, of headers since Linux 7.1
_LAYOUT = "BBH"  # of each kind: bytes after the type, bytes for each of its elements, flags
_TYPE = "III"
_MEMBER = "III"
_ENUM = "Ii"
_ENUM64 = "III"

_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM_KIND = 1, 2, 3, 4, 5, 6
_TYPEDEF, _VOLATILE, _CONST, _RESTRICT = 8, 9, 10, 11
_FUNC_PROTO, _VAR, _DATASEC, _DECL_TAG, _TYPE_TAG, _ENUM64_KIND = 13, 14, 15, 17, 18, 19
_MODIFIERS = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)
# Kind -> bytes after the type, and bytes for each of its elements.
_SIZES = {
    **dict.fromkeys(range(20), (0, 0)),
    **{_INT: (4, 0), _ARRAY: (12, 0), _STRUCT: (0, 12), _UNION: (0, 12), _ENUM_KIND: (0, 8)},
    **{_FUNC_PROTO: (0, 8), _VAR: (4, 0), _DATASEC: (0, 12), _DECL_TAG: (4, 0)},
    _ENUM64_KIND: (0, 12),
}
# The locations of inlined functions, where no layout section describes them.
_LOC_PARAM, _LOC_PROTO, _LOCSEC = 20, 21, 22
_LOCATIONS = {_LOC_PARAM: (4, 4), _LOC_PROTO: (0, 4), _LOCSEC: (0, 12)}


class BadBtf(FscaleError):  # noqa: N818 - it says what it is
    """The type information is damaged or of an unknown kind."""


@dataclass(frozen=True)
class StructMember:
    """A member: offset in bytes from the start of the outermost struct, dotted path, type name."""

    offset: int
    path: str
    type: str


@dataclass(frozen=True)
class _Type:
    name: str
    kind: int
    size_or_type: int
    flag: bool
    members: tuple[tuple[str, int, int], ...] = ()


def _layout(data: bytes, order: str, length: int) -> dict[int, tuple[int, int]]:
    """Return, by kind, the sizes that the layout section states; empty without a filled one."""
    at = struct.calcsize(order + _HEADER)
    if length < at + struct.calcsize(order + _LAYOUT_HEADER):
        return {}
    start, size = struct.unpack_from(order + _LAYOUT_HEADER, data, at)
    section = data[length + start : length + start + size]
    if len(section) < size:
        raise ValueError("its layout section is truncated")
    rows = struct.iter_unpack(order + _LAYOUT, section)
    sizes = {kind: (fixed, each) for kind, (fixed, each, _) in enumerate(rows)}
    return sizes if sizes.get(_INT) == _SIZES[_INT] else {}


class Btf:
    """The types of a kernel, or of a module on top of its kernel (`base`)."""

    def __init__(self, data: bytes, base: "Btf | None" = None) -> None:
        """Parse `data`.

        Raises:
            BadBtf: it is not complete BTF.
        """
        self._strings: bytes = base._strings if base else b""
        self._types: list[_Type] = list(base._types) if base else [_Type("void", 0, 0, False)]
        try:
            self._parse(data)
        except (struct.error, IndexError, ValueError) as error:
            if base:
                raise BadBtf(
                    f"a module's BTF does not fit the kernel's ({error}); build the module for "
                    "this kernel"
                ) from None
            raise BadBtf(f"the kernel's BTF cannot be read: {error}") from None
        self._structs: dict[str, int] = {}
        for number, kind in enumerate(self._types):
            if kind.kind in (_STRUCT, _UNION, _TYPEDEF) and kind.name:
                self._structs.setdefault(kind.name, number)

    def _parse(self, data: bytes) -> None:
        order = "<" if data[:2] == _MAGIC.to_bytes(2, "little") else ">"
        magic, _, _, length, type_at, type_size, string_at, string_size = struct.unpack_from(
            order + _HEADER, data
        )
        if magic != _MAGIC or len(data) < length + max(
            string_at + string_size, type_at + type_size
        ):
            raise ValueError("it is not BTF, or truncated")
        sizes = _LOCATIONS | _layout(data, order, length) | _SIZES
        self._strings = self._strings + data[length + string_at : length + string_at + string_size]
        at, end = length + type_at, length + type_at + type_size
        head = struct.Struct(order + _TYPE)
        while at < end:
            name, info, size = head.unpack_from(data, at)
            at += head.size
            kind, count, flag = (info >> 24) & 0x7F, info & 0xFFFFFF, bool(info >> 31)
            if kind not in sizes:
                raise ValueError(
                    f"type kind {kind} is unknown to fscale, and no layout section describes it"
                )
            fixed, each = sizes[kind]
            rest = data[at : at + fixed + each * count]
            at += fixed + each * count
            members = self._members(order, kind, rest)
            self._types.append(_Type(self._string(name), kind, size, flag, members))

    def _members(self, order: str, kind: int, rest: bytes) -> tuple[tuple[str, int, int], ...]:
        """Read what follows a type: members with type and offset, or enumerators with value."""
        if kind in (_STRUCT, _UNION):
            found = struct.iter_unpack(order + _MEMBER, rest)
            return tuple((self._string(n), t, o) for n, t, o in found)
        if kind == _ENUM_KIND:
            found = struct.iter_unpack(order + _ENUM, rest)
            return tuple((self._string(n), value, 0) for n, value in found)
        if kind == _ENUM64_KIND:
            found = struct.iter_unpack(order + _ENUM64, rest)
            return tuple((self._string(n), low | high << 32, 0) for n, low, high in found)
        if kind == _ARRAY:
            element, _, elements = struct.unpack(order + "III", rest)
            return (("", element, elements),)
        return ()

    def _string(self, offset: int) -> str:
        end = self._strings.index(b"\0", offset)
        return self._strings[offset:end].decode(errors="replace")

    def _resolve(self, number: int) -> tuple[_Type, str]:
        """Follow typedefs and qualifiers; return the type, and the outermost name on the way."""
        name = ""
        for _ in range(32):
            if number >= len(self._types):
                raise BadBtf(f"the kernel's BTF refers to type {number}, which it does not contain")
            kind = self._types[number]
            if kind.name and kind.kind != _TYPE_TAG:
                name = name or kind.name
            if kind.kind not in _MODIFIERS:
                return kind, name
            number = kind.size_or_type
        raise BadBtf("the kernel's BTF has a chain of typedefs that does not end")

    def _find(self, struct_name: str) -> _Type | None:
        number = self._structs.get(struct_name)
        if number is None:
            return None
        kind = self._resolve(number)[0]
        return kind if kind.kind in (_STRUCT, _UNION) else None

    def size(self, struct_name: str) -> int | None:
        """Return the size in bytes of a struct, or of a typedef of one; None if there is none."""
        kind = self._find(struct_name)
        return kind.size_or_type if kind else None

    def members(self, struct_name: str, depth: int = 6) -> Iterator[StructMember]:
        """Yield all members of a struct and of nested structs, outer members first.

        The elements of an array of structs are yielded one by one, if there are at most 64.
        """
        kind = self._find(struct_name)
        if kind:
            yield from self._walk(kind, 0, "", depth)

    def _walk(self, kind: _Type, start: int, prefix: str, depth: int) -> Iterator[StructMember]:
        for name, number, position in kind.members:
            bits = position & 0xFFFFFF if kind.flag else position
            offset = start + bits // 8
            path = f"{prefix}.{name}" if prefix and name else prefix or name
            yield from self._member(number, offset, path, depth)

    def _member(self, number: int, offset: int, path: str, depth: int) -> Iterator[StructMember]:
        inner, type_name = self._resolve(number)
        if path:
            yield StructMember(offset, path, type_name)
        if depth == 0:
            return
        if inner.kind in (_STRUCT, _UNION):
            yield from self._walk(inner, offset, path, depth - 1)
        elif inner.kind == _ARRAY:
            _, element, count = inner.members[0]
            size = self._resolve(element)[0].size_or_type
            if self._resolve(element)[0].kind in (_STRUCT, _UNION) and count <= 64:
                for index in range(count):
                    yield from self._member(
                        element, offset + index * size, f"{path}[{index}]", depth - 1
                    )

    def offset(self, struct_name: str, path: str) -> int | None:
        """Return the byte offset of a member given by its dotted path; None if there is none."""
        return next((m.offset for m in self.members(struct_name) if m.path == path), None)

    def enum(self, value_name: str) -> int | None:
        """Return the value of an enumerator; None if there is none."""
        for kind in self._types:
            if kind.kind in (_ENUM_KIND, _ENUM64_KIND):
                for name, value, _ in kind.members:
                    if name == value_name:
                        return value
        return None


def load(path: Path = VMLINUX) -> Btf | None:
    """Load the running kernel's BTF; None if it has none."""
    return Btf(path.read_bytes()) if path.is_file() else None


def load_module(module: str, base: Btf, directory: Path = VMLINUX.parent) -> Btf | None:
    """Load a module's BTF on top of its kernel's; None if it is built in or not loaded."""
    path = directory / module
    return Btf(path.read_bytes(), base) if module and path.is_file() else None
