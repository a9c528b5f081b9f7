# SPDX-License-Identifier: GPL-2.0-only
"""The section on the controls, which define linear scaling on this machine."""

from fscale.analysis.control import DEGRADED_BELOW, Basis, Control
from fscale.analysis.report.render import render
from fscale.analysis.report.section import Report, Section

TITLES = {"control_syscall": "system call", "control_user": "user-space loop"}


def limits(control: Control | None, whose: str = "") -> list[str]:
    """The limits of a run's controls; `whose` is inserted after "the control"."""
    sentences = []
    for given in control.given if control else ():
        best = given.best
        if given.basis is Basis.DEGRADED and best:
            sentences.append(
                f"The control{whose}, whose workers share nothing, reached {best.value:.3g} times "
                f"its base at {given.cores} cores, less than {DEGRADED_BELOW:.0%} of linear: other "
                "processes use the CPUs, or the machine is throttled. It is not used as the linear "
                "reference there, so the machine itself may cause what looks like contention."
            )
    if control and (without := [str(g.cores) for g in control.given if g.basis is Basis.MISSING]):
        sentences.append(
            f"At {', '.join(without)} cores no control{whose} has two undisturbed repetitions, so "
            "linear scaling counts physical cores there."
        )
    return sentences


def _build(report: Report) -> str | None:
    control = report.controls.get(report.members[0].label)
    if control is None or not control.given:
        return None
    names = sorted({name for given in control.given for name, _, _ in given.speedups})
    rows = [
        (given, [next((s for s in given.speedups if s[0] == name), None) for name in names])
        for given in control.given
    ]
    titles = [TITLES.get(name, name) for name in names]
    return render(
        "sections/control.html.j2",
        rows=rows,
        titles=titles,
        frequency=any(given.khz for given in control.given),
        whose=report.whose,
    )


SECTION = Section("Linear scaling on this machine", "control", _build)
