# SPDX-License-Identifier: GPL-2.0-only
"""The report's section on a paired run."""

from fscale.analysis.compare.compare import compare
from fscale.analysis.compare.settings import Settings
from fscale.analysis.compare.sides import open_sides
from fscale.analysis.report import comparison_page
from fscale.analysis.report.section import Report, Section
from fscale.model.errors import FscaleError
from fscale.model.files import Folder
from fscale.model.store import AB_FILE


def _build(report: Report) -> str | None:
    run_dir = report.results.path
    if not Folder(run_dir).exists(AB_FILE):
        return None
    try:
        sides = open_sides(run_dir, None)
        return comparison_page.fragment(compare(sides, Settings(metrics=sides.metrics)))
    except FscaleError as error:
        # The report also shows an incomplete run.
        return comparison_page.refusal(str(error))


SECTION = Section("Did the change alter scalability?", "compare", _build)
