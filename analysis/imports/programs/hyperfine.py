# SPDX-License-Identifier: GPL-2.0-only
"""The JSON of hyperfine (`--export-json`).

Its figures are times of a command; the rate is their inverse, in runs per second. Each of `times`
is a repetition; a file without them has one, the mean. A scanned parameter (`-P threads 1 8`) whose
name says that it is a number of workers gives the cores of a curve, any other is an option. Times
of the user and the system are means over all runs, and belong to no repetition.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fscale.analysis.imports.reading import Reading, make_cell
from fscale.analysis.reader import first_error
from fscale.model.errors import FscaleError
from fscale.model.files import parse_json, printable
from fscale.model.limits import MOST_CORES
from fscale.model.results import Cell

ABOUT = (
    "JSON of hyperfine (--export-json). A rate is runs of the command per second, and each run is "
    "a repetition."
)
EXAMPLE = "times.json"

_WORKERS = re.compile(
    "(n_?|num_?)?(cores|cpus|jobs|processes|procs|tasks|threads|workers)|nproc", re.IGNORECASE
)

_LEAST = 1e-9  # seconds of a run; hyperfine's clock counts nanoseconds


class _Hyperfine(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False, coerce_numbers_to_str=True)


class _Result(_Hyperfine):
    command: str
    mean: float = Field(ge=0, description="seconds")
    times: list[float] = Field(default=[], description="seconds")
    exit_codes: list[int | None] = Field(default=[], description="null: killed by a signal")
    parameters: dict[str, str] = {}

    @property
    def workers(self) -> str | None:
        """The name of the parameter that is the number of workers."""
        return next(
            (
                name
                for name, value in self.parameters.items()
                if _WORKERS.fullmatch(name)
                and re.fullmatch(r"0*[1-9]\d{0,5}", value)
                and int(value) <= MOST_CORES
            ),
            None,
        )

    @property
    def template(self) -> str:
        """The command with the names of its parameters in place of their values.

        A value is replaced where it is a word, or else where it is found if that is one place.
        """
        text = self.command
        for name, value in self.parameters.items():
            pieces = re.split(rf"(?<![\w.]){re.escape(value)}(?![\w.])", text)
            if len(pieces) == 1 and text.count(value) == 1:
                pieces = text.split(value)
            text = f"{{{name}}}".join(pieces)
        return text


class _Export(_Hyperfine):
    results: list[_Result] = Field(min_length=1)


def read(files: Mapping[Path, str]) -> Reading:
    """Read files of one machine.

    Raises:
        FscaleError: a file is not one of hyperfine, or has an impossible time.
    """
    cells: list[Cell] = []
    notes = ["the rate is the inverse of the time of a command, with its start"]
    for path, text in files.items():
        for result in _parse(path, text).results:
            cells += _cells(path, result)
            if not result.times:
                notes.append(f"{printable(result.command)}: the mean only, without the runs")
    return Reading(cells, notes=notes)


def _parse(path: Path, text: str) -> _Export:
    try:
        return _Export.model_validate(parse_json(text.encode()))
    except ValidationError as error:
        raise FscaleError(
            f"{path} is not JSON of hyperfine: {printable(first_error(error))}"
        ) from None
    except ValueError as error:
        raise FscaleError(f"{path} is not JSON, or is truncated: {error}") from None


def _cells(path: Path, result: _Result) -> Iterator[Cell]:
    workers = result.workers
    options = {k: printable(v) for k, v in result.parameters.items() if k != workers}
    options["command"] = printable(" ".join(result.template.split()))
    times = result.times or [result.mean]
    codes = result.exit_codes or [0] * len(times)
    if not result.times:
        codes = [next((code for code in codes if code != 0), 0)]
    if len(codes) != len(times):
        raise FscaleError(
            f"{path}: {printable(result.command)} has {len(times)} times, but {len(codes)} exit "
            "codes"
        )
    for number, (seconds, code) in enumerate(zip(times, codes, strict=True), 1):
        if seconds < 0:
            raise FscaleError(
                f"{path}: run {number} of {printable(result.command)} took {seconds:g} seconds, "
                "which is impossible"
            )
        yield make_cell(
            result.template,
            int(result.parameters[workers]) if workers else 1,
            unit="runs",
            options=options,
            **_figure(seconds, code),
        )


def _figure(seconds: float, code: int | None) -> dict[str, Any]:
    """The fields of a cell: its figure, or why there is none."""
    if code != 0:
        how = "was killed by a signal" if code is None else f"ended with exit code {code}"
        return {"status": "error", "reason": f"the command {how}", "fault": "load"}
    if seconds < _LEAST:
        reason = "the command took no longer than the shell, whose time hyperfine subtracts"
        return {"status": "invalid", "reason": reason}
    return {"ops": 1, "seconds": seconds, "ops_per_second": 1 / seconds}
