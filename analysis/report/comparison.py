# SPDX-License-Identifier: GPL-2.0-only
"""The report's section on a paired run."""

from analysis.compare.compare import compare
from analysis.compare.settings import Settings
from analysis.compare.sides import AB_FILE, open_sides
from analysis.report import comparison_page
from analysis.report.section import Report, Section
from fscale.model.errors import FscaleError
from fscale.model.files import Folder


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
