# SPDX-License-Identifier: GPL-2.0-only
"""What the machine itself gives: the controls, by which linear scaling is judged."""

from analysis.control import DEGRADED_BELOW, Basis, Control
from analysis.report.render import render
from analysis.report.section import Report, Section

TITLES = {"control_syscall": "system call", "control_user": "user-space loop"}


def limits(control: Control | None, whose: str = "") -> list[str]:
    """What the controls of a run do not bear; `whose` is put behind "the control"."""
    said = []
    for given in control.given if control else ():
        best = given.best
        if given.basis is Basis.DEGRADED and best:
            said.append(
                f"The control{whose}, whose workers share nothing, gave {best.value:.3g} times its "
                f"base at {given.cores} cores, below {DEGRADED_BELOW:.0%} of linear: others use "
                "the CPUs, or the machine is throttled. It is not taken for linear there, so what "
                "is called contention may be the machine."
            )
    if control and (without := [str(g.cores) for g in control.given if g.basis is Basis.MISSING]):
        said.append(
            f"At {', '.join(without)} cores no control{whose} has two repetitions that others did "
            "not disturb: linear is by physical cores there."
        )
    return said


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


SECTION = Section("What this machine gives", "control", _build)
