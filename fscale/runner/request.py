# SPDX-License-Identifier: GPL-2.0-only
"""The request of a user: a suite with overrides, read and validated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from fscale.model import catalogue, corecounts, paths, variant
from fscale.model.config import Suite
from fscale.model.corecounts import CoreCount
from fscale.model.errors import FscaleError
from fscale.model.files import parse_toml
from fscale.model.load import Load
from fscale.model.results import CellKey
from fscale.model.topology import Preset
from fscale.runner.options import read_value
from fscale.runner.storage import disk


@dataclass
class Request:
    """The request of a user: `overrides` of suite keys, `explicit` names, and other options."""

    suite: Path
    output: Path
    overrides: dict[str, Any] = field(default_factory=dict)
    options: list[str] = field(default_factory=list)
    explicit: set[str] = field(default_factory=set)
    seed: int | None = None
    device: Path | None = None
    directory: Path | None = None
    yes_format: str | None = None
    partitions: int | None = None
    binary: Path = paths.BENCH
    by_id: Path = disk.BY_ID
    applications: Callable[[Sequence[str]], list[Load]] = lambda _: []
    """loads that can be measured besides the microbenchmarks, and those of TOML files by path"""
    given: Suite | None = None
    """the suite, if it is not in a file; `suite` is then a name for messages"""
    choose: Callable[[list[CellKey]], list[CellKey]] = lambda cells: cells
    """which of the suite's cells are measured"""


def parse_options(texts: list[str]) -> dict[str, dict[str, int | str]]:
    """Parse `NAME=VALUE`, for all workloads with that option, and `WORKLOAD.NAME=VALUE` for one.

    Several values, separated by commas, stay one text until the option is known.

    Raises:
        FscaleError: a text has another form, or an option is given twice.
    """
    options: dict[str, dict[str, int | str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        workload, dot, option = name.rpartition(".")
        if not equals or not option:
            raise FscaleError(
                f"--option {text} is not an option with a value; give NAME=VALUE or "
                "WORKLOAD.NAME=VALUE"
            )
        chosen = options.setdefault(workload if dot else "all", {})
        if option in chosen:
            raise FscaleError(
                f"--option {name} is given twice; give it once, with several values separated by "
                "commas"
            )
        chosen[option] = read_value(value)
    return options


def parse_settings(texts: list[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """Parse suite keys from `KEY=VALUE`, the value as in TOML.

    `named` are the keys that other options set. The values are validated with the suite.

    Raises:
        FscaleError: a text has another form, or a key is given twice.
    """
    settings: dict[str, Any] = {}
    for text in texts:
        try:
            given = parse_toml(text)
        except ValueError:
            given = {}
        if len(given) != 1:
            raise FscaleError(
                f"--set {text} is not one key with a value; give KEY=VALUE with the value as in "
                "TOML, such as "
                """--set latency=true or --set 'order="cores"'"""
            )
        if twice := given.keys() & (named.keys() | settings.keys()):
            raise FscaleError(f"--set {text}: {', '.join(twice)} is given twice; give it once")
        settings |= given
    return settings


def named_in(overrides: Mapping[str, Any]) -> set[str]:
    """Return the names that the user gave explicitly. If one is unavailable, the command fails."""
    lists = (overrides.get(key, []) for key in ("filesystems", "workloads", "media"))
    return {str(name) for names in lists if isinstance(names, list) for name in names}


def parse_list(
    option: str, text: str | None, split: Callable[[str], list[str]] = catalogue.split_names
) -> list[str] | None:
    """Split the value of an option into names; None if the option is not given.

    Raises:
        FscaleError: it names nothing, as when a shell's variable is empty.
    """
    if text is None:
        return None
    if not (names := split(text)):
        raise FscaleError(f"{option} {text!r} names nothing; name one or more, or leave it out")
    return names


def parse_cores(text: str) -> list[CoreCount] | str:
    """Parse core counts such as `1,2,4-16:4,100%`, or the name of a preset.

    Raises:
        FscaleError: the text is neither.
    """
    if text in get_args(Preset):
        return text
    try:
        return corecounts.parse(text)
    except ValueError as error:
        raise FscaleError(f"--cores {text}: {error}, or {' or '.join(get_args(Preset))}") from None


def _with_partitions(names: list[str], partitions: int) -> list[str]:
    """Add, for each fresh file system on a disk, a variant with `partitions` partitions."""
    described = {name: catalogue.load_filesystem(name) for name in names}
    whole = [
        name for name, fs in described.items() if not (fs.nodev or fs.aged) and fs.partitions == 1
    ]
    return [*names, *(variant.with_partitions(name, partitions) for name in whole)]


def read_suite(request: Request) -> Suite:
    """Return the suite with the overrides of the request, validated.

    Raises:
        FscaleError: it is not valid.
    """
    suite = request.given or catalogue.load_suite(request.suite)
    data = _validated(request, suite.model_dump() | request.overrides).model_dump()
    if request.directory and "media" not in request.overrides:
        data["media"] = ["dir"]
    if request.device and "media" not in request.overrides:
        data["media"] = ["device"]
    if request.partitions is not None:
        data["filesystems"] = _with_partitions(data["filesystems"], request.partitions)
    for name, options in parse_options(request.options).items():
        data["options"] = {**data["options"], name: data["options"].get(name, {}) | options}
    return _validated(request, data)


def _validated(request: Request, data: dict[str, Any]) -> Suite:
    try:
        return Suite.model_validate(data)
    except ValidationError as error:
        raise FscaleError(
            f"{request.suite} with overrides: {catalogue.explain(error, Suite)}"
        ) from None
