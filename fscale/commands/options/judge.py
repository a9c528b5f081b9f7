# SPDX-License-Identifier: GPL-2.0-only
"""The rules by which a comparison is judged."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from fscale.analysis.compare.settings import Settings
from fscale.analysis.metrics import EVERY, FAIRNESS, LATENCIES, METRICS, PER_JOULE, Metric
from fscale.commands.options.helptext import JUDGING
from fscale.model.errors import FscaleError


def fraction_option(description: str, *, least: float = 0.001, most: float = 0.9) -> Any:
    """Return an option for a share between `least` and `most`, such as a margin."""
    return typer.Option(
        min=least,
        max=most,
        metavar="FRACTION",
        help=description,
        rich_help_panel=JUDGING,
    )


@dataclass(frozen=True)
class JudgeOptions:
    """The rules by which a comparison is judged."""

    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="METRIC",
            help=f"Judge only this metric; repeatable: {', '.join(METRICS)} (default: these); the "
            f"latency of an operation: {', '.join(LATENCIES)}; fairness between workers: "
            f"{', '.join(FAIRNESS)}; energy: {PER_JOULE}.",
            rich_help_panel=JUDGING,
        ),
    ] = None
    margin: Annotated[
        float | None,
        fraction_option(
            "Ignore relative changes smaller than this. Default: 0.05 (5%), in slices 0.02."
        ),
    ] = None
    count_margin: Annotated[
        float | None,
        fraction_option(
            "Ignore relative changes of counted work per operation smaller than this. "
            "Default: 0.01.",
            least=0.0001,
        ),
    ] = None
    latency_margin: Annotated[
        float | None,
        fraction_option(
            "Ignore relative changes of a latency smaller than this. Default: 0.1 (10%)."
        ),
    ] = None
    pause: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=10,
            metavar="SECONDS",
            help='Longest pause of a worker that "same" must exclude in slices; it takes 78 times '
            "as much work of each side. 0: whatever work was done. Default: 0.3.",
            rich_help_panel=JUDGING,
        ),
    ] = None
    fdr: Annotated[
        float | None,
        fraction_option(
            "False discovery rate over all tests of the comparison together. Default: 0.01.",
            least=0.0001,
            most=0.5,
        ),
    ] = None

    def over(self, rules: Settings) -> Settings:
        """`rules` with what was given in place; --margin is of whole repetitions and of slices.

        Raises:
            FscaleError: there is no such metric, or a margin applies to none of them.
        """
        metrics = parse_metrics(self.metric) if self.metric else rules.metrics
        latencies = [metric for metric in metrics if metric in LATENCIES]
        given: dict[str, Any] = {
            name: value
            for name in ("count_margin", "pause", "fdr")
            if (value := getattr(self, name)) is not None
        }
        if self.margin is not None:
            if len(latencies) == len(metrics):
                raise FscaleError(
                    f"--margin does not apply to {', '.join(latencies)}; give --latency-margin"
                )
            given |= dict.fromkeys(("margin", "slice_margin"), self.margin)
        if self.latency_margin is not None:
            if not latencies:
                raise FscaleError(
                    "--latency-margin applies to latencies, and none is judged; name one with "
                    f"--metric: {', '.join(LATENCIES)}"
                )
            given["latency_margin"] = self.latency_margin
        return rules.model_copy(update=given | {"metrics": metrics})


def parse_metrics(names: list[str]) -> tuple[Metric, ...]:
    """Return the metrics to judge.

    Raises:
        FscaleError: there is no such metric.
    """
    wrong = set(names) - set(EVERY)
    if wrong:
        raise FscaleError(
            f"--metric {', '.join(sorted(wrong))}: no such metric; give one of {', '.join(EVERY)}"
        )
    return tuple(m for m in EVERY if m in names)
