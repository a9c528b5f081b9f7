# SPDX-License-Identifier: GPL-2.0-only
"""Reads TOML files into validated models; every error names the file and the key."""

import contextlib
import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fscale.model import alternatives, filetest, paths, variant
from fscale.model.config import Aging, FileSystem, Medium, Suite
from fscale.model.errors import FscaleError
from fscale.model.files import parse_toml
from fscale.model.results import NO_FILESYSTEM

_TOML = ".toml"

Model = TypeVar("Model", bound=BaseModel)


def explain(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """Describe each mistake by its key and what is wrong with it, joined by semicolons.

    For an unknown key of `model`, the text suggests similar names.
    """
    lines = []
    mistakes = error.errors(include_url=False)
    apt = [f"{_place(item)}." for item in mistakes if not _wants_scalar(item)]
    for item in mistakes:
        where = _place(item)
        # Where a list is one of several types, the others only say that it is none of theirs.
        if _wants_scalar(item) and any(place.startswith(f"{where}.") for place in apt):
            continue
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            message = "is not a key that fscale knows"
            if model and len(item["loc"]) == 1:
                message += suggest(where, model.model_fields)
        lines.append(f"{where}: {message}")
    return "; ".join(dict.fromkeys(lines))


def _place(item: ErrorDetails) -> str:
    """The key; pydantic puts the branch of a union into the location, too."""
    return ".".join(str(part) for part in item["loc"] if not _is_branch(part)) or "the file"


def _wants_scalar(item: ErrorDetails) -> bool:
    """Whether a list was found where a number or a text may be."""
    return item["type"] in ("int_type", "string_type") and isinstance(item["input"], list)


def _is_branch(part: int | str) -> bool:
    return isinstance(part, str) and ("[" in part or part in {"str", "int", "constrained-int"})


def load_toml(path: Path, model: type[Model]) -> Model:
    """Read the TOML file at `path` as `model`.

    Raises:
        FscaleError: the file cannot be read, is not TOML, or does not fit the model; the text
            names the file and the key.
    """
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FscaleError(f"{path} does not exist") from None
    except OSError as error:
        raise FscaleError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise FscaleError(f"{path} is not valid TOML: {error}") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise FscaleError(f"{path}: {explain(error, model)}") from None


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?` for a misspelt name, else the list of all known names."""
    names = list(known)
    if near := nearest(name, names):
        return f"; did you mean {' or '.join(near)}?"
    return f"; known names: {', '.join(names)}" if names else ""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three names that a misspelt one may have meant; upper case does not matter."""
    names = list(known)
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=3, cutoff=0.5)
    return [n for n in names if n.lower() in near]


def names(directory: Path) -> list[str]:
    """Return the names by which the TOML files of a directory can be given, sorted."""
    return sorted(path.stem for path in directory.glob("*.toml"))


def load_suite(path: Path) -> Suite:
    """Load a suite by its path, or by its name in `configs/suites`.

    Raises:
        FscaleError: there is no such suite, or it is not valid.
    """
    if not filetest.is_file(path) and path.suffix != ".toml" and len(path.parts) == 1:
        named = paths.SUITES / f"{path}.toml"
        if not named.exists():
            raise FscaleError(f"there is no suite {path}{suggest(str(path), names(paths.SUITES))}")
        path = named
    return load_toml(path, Suite)


def short_name(name: str) -> str:
    """Return the name used in results: a path to a TOML file loses its folder and suffix."""
    return variant.label(name)


def is_filesystem(name: str) -> bool:
    """Return whether a text begins with a file system's name or with the path of a TOML file."""
    with contextlib.suppress(FscaleError):
        first = variant.parse(name).name or ""
        return is_path(first) or (paths.FILESYSTEMS / f"{first}.toml").exists()
    return False


def split_names(text: str) -> list[str]:
    """Split a text at commas, except where the comma belongs to the path of a TOML file."""
    words = text.split(",")
    names: list[str] = []
    while words:
        ends = next((n for n, word in enumerate(words) if _TOML in word), 0)
        path = ",".join(words[: ends + 1])
        length = ends + 1 if filetest.is_file(Path(path.partition(_TOML)[0].strip() + _TOML)) else 1
        names.append(",".join(words[:length]).strip())
        words = words[length:]
    return [name for name in names if name]


def split_filesystems(text: str) -> list[str]:
    """Split a comma-separated text into file systems, those of alternatives in braces among them.

    Commas also separate mount options and features. A part belongs to the file system before it if
    that one has an open brace, or has options while the part is not the name of a file system.

    Raises:
        FscaleError: an alternative is given twice.
    """
    filesystems: list[str] = []
    for word in split_names(text):
        last = filesystems[-1] if filesystems else ""
        if last.count("{") > last.count("}") or (
            variant.has_options(last) and not is_filesystem(word)
        ):
            filesystems[-1] += f",{word}"
        else:
            filesystems.append(word)
    try:
        return [one for text in filesystems for one in alternatives.expand(text)]
    except ValueError as error:
        raise FscaleError(str(error)) from None


def is_path(name: str) -> bool:
    """Return whether a name is the path of a TOML file."""
    return name.endswith(_TOML)


def find(name: str, directory: Path, what: str) -> Path:
    """Return the TOML file of a name in a directory, or the path that a name is.

    Raises:
        FscaleError: the name is unknown (with similar names).
    """
    if is_path(name):
        return Path(name)
    path = directory / f"{name}.toml"
    if not path.exists():
        raise FscaleError(f"unknown {what} {name}{suggest(name, names(directory))}")
    return path


def load_filesystem(text: str) -> FileSystem:
    """Load a file system by name or by the path of its TOML file, and apply its modifications.

    `ext4:8` is ext4 on each of eight partitions of the medium; the options of
    `ext4:mount=data=journal` and `ext4:mkfs=-O fast_commit` are merged into those of the TOML file.

    Raises:
        FscaleError: the name is unknown (with similar names), or the modification is not possible.
    """
    return load_variant(variant.parse(text))


def load_variant(asked: variant.Variant) -> FileSystem:
    """Load the file system of a variant, and apply its modifications.

    Raises:
        FscaleError: the name is unknown (with similar names), or the modification is not possible.
    """
    asked.refuse_but(variant.OF_FILESYSTEM, "a file system that is measured here")
    assert asked.name is not None
    if short_name(asked.name) == NO_FILESYSTEM:
        raise FscaleError(
            f"{asked.text}: the name {NO_FILESYSTEM} is reserved for cells without a file system; "
            "rename the TOML file"
        )
    fs = asked.apply(load_toml(find(asked.name, paths.FILESYSTEMS, "file system"), FileSystem))
    if asked.aged:
        profile = load_toml(find(asked.aged, paths.AGING, "aging profile"), Aging)
        fs = fs.model_copy(update={"aged": profile})
    if fs.aged and (fs.nodev or fs.partitions > 1):
        raise FscaleError(
            f"{asked.text}: only a file system that has a medium of its own can be aged, because "
            "an image of the medium is kept; leave aged, or the partitions, out"
        )
    return fs


def filesystems() -> list[FileSystem]:
    """Load all file systems of `configs/filesystems`."""
    return [load_filesystem(name) for name in names(paths.FILESYSTEMS)]


def load_medium(name: str) -> Medium:
    """Load a medium by name or by the path of its TOML file.

    Raises:
        FscaleError: the name is unknown (with similar names), or the file is not valid.
    """
    return load_toml(find(name, paths.MEDIA, "medium"), Medium)
