# SPDX-License-Identifier: GPL-2.0-only
"""The comparison as KTAP: a test for each judgement, as in the JUnit XML."""

from collections.abc import Iterator

from fscale.analysis import ktap
from fscale.analysis.compare import wording
from fscale.analysis.compare.settings import Comparison, Judgement
from fscale.analysis.ktap import Test


def render(comparison: Comparison) -> str:
    """The text: worse verdicts fail, broken and lost are errors, undecided and missing skipped."""
    return ktap.render(list(_tests(comparison)))


def _tests(comparison: Comparison) -> Iterator[Test]:
    for point in comparison.health:
        mended = point.kind == "mended"
        said = wording.health(point)
        yield Test(f"{point.subject.name} {point.kind}", mended, "" if mended else "ERROR", said)
    for judgement in comparison.judgements:
        yield _judged(judgement)
    for lock in comparison.locks:
        said = f"{lock.share:.1%} of the cores' time, {lock.base_share:.1%} in BASE"
        yield Test(f"{lock.subject.name} new bottleneck {lock.lock}", True, "", said)
    for side, missing in (("BASE", comparison.missing_in_base), ("NEW", comparison.missing_in_new)):
        for name in missing:
            yield Test(name, True, "SKIP", f"missing in {side}")


def _judged(judgement: Judgement) -> Test:
    undecided = judgement.verdict == "undecided"
    return Test(
        f"{judgement.subject.name} {judgement.metric}",
        not judgement.worse,
        "SKIP" if undecided else "",
        f"{judgement.verdict}: {wording.judgement_line(judgement)}",
        (remark,) if (remark := wording.remark(judgement)) else (),
    )
