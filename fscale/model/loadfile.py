# SPDX-License-Identifier: GPL-2.0-only
"""A load of a user's own: the model of its TOML file, and the files that define it."""

import re
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fscale.model import catalogue, paths
from fscale.model.bench import Descriptor, Mode, OptionHelp, Strict
from fscale.model.errors import FscaleError
from fscale.model.limits import MOST_SECONDS

Figure = Literal["rate", "ops", "seconds", "p50", "p90", "p99", "p99_9", "max"]
FIGURES: tuple[str, ...] = Figure.__args__  # type: ignore[attr-defined]
PLACEHOLDERS = {
    "directory": "the empty directory in the file system under test",
    "here": "the directory of the TOML file",
    "cores": "the number of CPUs under test",
    "cpus": "their numbers, such as 0,1",
    "seconds": "the length of the timed window",
    "seed": "a number that differs from repetition to repetition",
    "worker": "the number of this copy, from 0",
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+]*")


class LoadOption(Strict):
    """An option of a load, which `--option NAME=VALUE` sets."""

    default: int | str
    help: str
    share_of: Literal["cores"] | Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="the value is in MiB, and at most the space of the file system divided by this "
        'number, or by the core count ("cores")',
    )


class FioJob(Strict):
    """A load that fio runs."""

    job: str = Field(
        pattern=r"^[^/]+$", description="fio job file, in the directory of the TOML file"
    )
    per_core: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default={},
        description="name of a job -> processes per core, rounded, at least one. Without it, "
        "a job with numjobs has that many at every core count, and a job without has one per core. "
        "The key workers_per_cpu of a suite multiplies processes per core",
    )


class CommandLoad(Strict):
    """A load that is a command. Arguments may hold {directory}, {cores} and the like."""

    run: list[str] = Field(min_length=1, description="argv, which is timed from start to end")
    setup: list[list[str]] = Field(default=[], description="argvs that run before, untimed")
    copies: Literal["cores"] | Annotated[int, Field(ge=1)] = Field(
        default=1,
        description='how many run at once; "cores": one on each core, bound to it, or '
        "as many as the suite's key workers_per_cpu says",
    )
    ops: float | None = Field(
        default=None, gt=0, description="operations of one copy, if their number is fixed"
    )
    regex: list[str] = Field(
        default=[],
        description="patterns for the output; named groups are figures: rate or ops, seconds, p50, "
        "p90, p99, p99_9, max. The last match counts",
    )
    json_: dict[Figure, str] = Field(
        default={},
        alias="json",
        description="figure -> place in the JSON that the command prints, such as jobs.0.read.iops",
    )
    latency_unit: Literal["s", "ms", "us", "ns"] = Field(
        default="s", description="of p50, p90, p99, p99_9 and max"
    )
    limit: float | None = Field(
        default=None,
        gt=0,
        le=MOST_SECONDS,
        description="seconds after which it is killed; without it the window and the margin",
    )

    @model_validator(mode="after")
    def _whole(self) -> "CommandLoad":
        named: set[str] = set(self.json_)
        for pattern in self.regex:
            try:
                groups = set(re.compile(pattern).groupindex)
            except re.error as error:
                raise ValueError(f"regex {pattern!r} is not valid: {error}") from None
            if unknown := groups - set(FIGURES):
                raise ValueError(
                    f"regex {pattern!r} names {', '.join(sorted(unknown))}; the figures are "
                    f"{', '.join(FIGURES)}"
                )
            if not groups:
                raise ValueError(
                    f"regex {pattern!r} has no named group; write (?P<rate>...) or (?P<ops>...)"
                )
            named |= groups
        counts = [name for name in ("rate", "ops") if name in named]
        counts += ["ops"] if self.ops is not None else []
        if len(counts) != 1:
            raise ValueError(
                "give exactly one source of the result of a command: ops = NUMBER, or rate or "
                "ops in regex or json"
            )
        timed = any("{seconds}" in argument for argument in self.run)
        if self.ops is None and not timed and "ops" not in named:
            raise ValueError("a rate is over a window: pass {seconds} to the command, or count ops")
        return self


class LoadFile(Strict):
    """`configs/loads/<name>.toml`, or a file of the user's: a fio job or a command."""

    title: str = Field(description="one line that reports show")
    operation: str = Field(description="what is counted, such as: read or write 4 KiB")
    unit: str = Field(default="ops", description="unit of what is counted")
    user: str = Field(
        default="nobody",
        description="user that runs the load if fscale runs as root",
    )
    paper: str = Field(default="none: a load of a user's own", description="its source")
    type: Literal["data", "metadata"] = Field(
        default="data", description="what it works on, by which workloads are grouped"
    )
    action: Literal["read", "write"] = Field(
        default="write", description="what it does, by which workloads are grouped"
    )
    sharing: Literal["low", "medium", "high"] = Field(
        default="medium", description="how much its processes share, by which they are grouped"
    )
    contention: str = Field(default="not known", description="the expected contention")
    mode: Mode | None = Field(
        default=None,
        description="how it reads and writes files; by default a command is buffered, and a fio "
        "job follows its key direct",
    )
    needs: dict[str, str] = Field(
        default={}, description="program that must be installed -> Debian package"
    )
    options: dict[str, LoadOption] = Field(
        default={}, description="$NAME of a job file and {name} of a command have the values"
    )
    fio: FioJob | None = Field(default=None, description="the load is a fio job")
    command: CommandLoad | None = Field(default=None, description="the load is a command")

    @model_validator(mode="after")
    def _one_kind(self) -> "LoadFile":
        if (self.fio is None) == (self.command is None):
            raise ValueError("a load is either a [fio] job or a [command]; give one of the two")
        if bad := [n for n in self.options if n in PLACEHOLDERS or not n.isidentifier()]:
            raise ValueError(f"an option cannot be called {bad[0]}; give it another name")
        known = [*PLACEHOLDERS, *self.options]
        for argument in (a for argv in self.argvs for a in argv):
            try:
                fields = {field for _, field, _, _ in Formatter().parse(argument)} - {None}
            except ValueError as error:
                raise ValueError(
                    f"argument {argument!r}: {error}; write {{{{ for a brace"
                ) from None
            if unknown := sorted(str(field) for field in fields if field not in known):
                raise ValueError(
                    f"argument {argument!r} holds {{{unknown[0]}}}; known are {', '.join(known)}"
                )
        return self

    @property
    def argvs(self) -> list[list[str]]:
        """All argvs of a command."""
        return [self.command.run, *self.command.setup] if self.command else []


@dataclass(frozen=True)
class NamedLoad:
    """A load by its name in results, with the texts that define it."""

    name: str
    path: Path
    file: LoadFile
    texts: dict[str, str]
    """file name -> content: the TOML file and the job file"""

    def descriptor(self, modes: list[Mode]) -> Descriptor:
        """Describe the load as the microbenchmark describes its workloads."""
        file = self.file
        return Descriptor(
            id=self.name,
            title=file.title,
            operation=file.operation,
            paper=file.paper,
            type=file.type,
            action=file.action,
            sharing=file.sharing,
            contention=file.contention,
            setup="as its own files describe",
            consumes=False,
            background=False,
            apart=True,
            min_cores=1,
            modes=modes,
            options=[
                OptionHelp(
                    name=name,
                    default=option.default,
                    help=option.help,
                    least=None if option.share_of is None else 1,
                )
                for name, option in file.options.items()
            ],
            definition=self.texts,
        )


def read(text: str) -> NamedLoad:
    """Read a load by its name in `configs/loads`, or by the path of its TOML file.

    Raises:
        FscaleError: there is no such load, or its files are not valid.
    """
    path = catalogue.find(text, paths.LOADS, "load")
    file = catalogue.load_toml(path, LoadFile)
    if not _ID.fullmatch(path.stem):
        raise FscaleError(
            f"{path}: a load is named after its file, but {path.stem!r} is not a valid name; use "
            "letters, digits, _, . and +"
        )
    texts = {path.name: path.read_text()}
    if file.fio:
        job = path.parent / file.fio.job
        try:
            texts[job.name] = job.read_text()
        except (OSError, UnicodeDecodeError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is not text"
            raise FscaleError(f"{path}: the job file {job} cannot be read: {said}") from None
    return NamedLoad(path.stem, path.resolve(), file, texts)
