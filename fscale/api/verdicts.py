# SPDX-License-Identifier: GPL-2.0-only
"""Compares runs as `fscale compare` does."""

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from fscale.analysis.compare import compare as judging
from fscale.analysis.compare import wording
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.metrics import Metric
from fscale.analysis.reader import first_error
from fscale.analysis.tables import verdicts
from fscale.analysis.tables.frame import make_frame
from fscale.model.errors import FscaleError


def compare(
    base: str | os.PathLike[str],
    new: str | os.PathLike[str] | None = None,
    *,
    metrics: Sequence[Metric] | None = None,
    margin: float | None = None,
    fdr: float | None = None,
    allow_different: Sequence[str] = (),
) -> pd.DataFrame:
    """Judge whether NEW is slower than BASE: a row for each verdict, regressions first.

    `base` and `new` are results directories; without `new`, `base` is a run of `fscale ab` or
    `fscale gate`, which contains both sides, and whose own rules are the defaults. `metrics`: what
    is judged (default: what `fscale compare` judges). `margin`: relative changes of a rate smaller
    than this are ignored (default: 0.05, in slices 0.02). `fdr`: false discovery rate over all
    tests (default: 0.01). `allow_different`: differences despite which the runs are compared, as
    `--allow-different`.

    The frame's `attrs` have `units` and `meanings` of the columns, `conclusion` (the answer in a
    sentence), `base` and `new` (the names of the sides) and `warnings`.

    Raises:
        FscaleError: a directory is not a run, the figures mean different things, a setting is not
            valid, or there are too few repetitions for any verdict.
    """
    sides = open_sides(Path(base), None if new is None else Path(new))
    given = {
        "metrics": tuple(metrics) if metrics else None,
        "margin": margin,
        "slice_margin": margin,
        "fdr": fdr,
        "allow_different": tuple(allow_different),
    }
    known = {name: value for name, value in given.items() if value is not None}
    try:
        settings = Settings.model_validate(sides.settings.model_dump() | known)
    except ValidationError as error:
        raise FscaleError(first_error(error)) from None
    comparison = judging.compare(sides, settings)
    frame = make_frame(verdicts.COLUMNS, verdicts.rows(comparison))
    frame.attrs |= {
        "conclusion": wording.conclusion(comparison),
        "base": comparison.base.label,
        "new": comparison.new.label,
        "warnings": comparison.warnings,
    }
    return frame
