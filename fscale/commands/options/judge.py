# SPDX-License-Identifier: GPL-2.0-only
"""By what rules it is judged."""

from dataclasses import dataclass
from typing import Annotated

import typer

from analysis.compare.settings import METRICS, Metric, Settings
from fscale.model.errors import FscaleError


@dataclass(frozen=True)
class JudgeOptions:
    """By what rules it is judged."""

    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help=f"Judge only {' or '.join(METRICS)}; repeatable."),
    ] = None
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.9,
            help="Ignore relative changes up to this (default 0.05; in slices 0.02).",
        ),
    ] = None
    count_margin: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=0.9,
            help="Ignore relative changes of counted work per operation up to this.",
        ),
    ] = 0.01
    fdr: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="False discovery rate over all tests.")
    ] = 0.01

    @property
    def settings(self) -> Settings:
        """The rules; one margin is that of whole repetitions and of slices. FscaleError."""
        given = (
            {} if self.margin is None else dict.fromkeys(("margin", "slice_margin"), self.margin)
        )
        return Settings(
            metrics=parse_metrics(self.metric),
            count_margin=self.count_margin,
            fdr=self.fdr,
            **given,
        )


def parse_metrics(names: list[str] | None) -> tuple[Metric, ...]:
    """The metrics to judge: all when none is named."""
    wrong = set(names or ()) - set(METRICS)
    if wrong:
        raise FscaleError(f"--metric {', '.join(sorted(wrong))}: there are {', '.join(METRICS)}")
    return tuple(m for m in METRICS if not names or m in names)
