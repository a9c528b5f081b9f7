# SPDX-License-Identifier: GPL-2.0-only
"""Flame graphs by Brendan Gregg's flamegraph.pl: SVG files that need nothing else.

Debian has the script in libdevel-nytprof-perl; it needs perl only, which every Debian has. inferno
(a port in Rust, the same options and output) is used where it is installed.
"""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from analysis.diagnosis.cpuprofile import CpuProfile
from analysis.diagnosis.offcpu import OffCpuProfile
from fscale.model.errors import FscaleError, MissingTool

DEBIAN = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
PACKAGE = "libdevel-nytprof-perl"
# The programs write names into SVG, HTML and JavaScript, each with other holes in its quoting.
_FOREIGN = re.compile(r"[^\w.:$@+~=,/*\[\]-]", re.ASCII)
# What acts in a flame graph, and its buttons.
_ACTING = re.compile(
    r"<(script|style)\b.*?</\1>|<text\b[^>]*\bid=\"(?:search|unzoom)\".*?</text>"
    r"|\bon\w+=\"[^\"]*\"",
    re.DOTALL,
)
# What each frame of flamegraph.pl repeats, half of its bytes; the root has what of it can be seen.
_REPEATED = re.compile(
    r' rx="2" ry="2"| class="func_g"| text-anchor=""| font-size="12"| font-family="Verdana"'
    r'| fill="rgb\(0,0,0\)"|<text [^>]*></text>\n'
)
_FOREIGN_TITLE = re.compile(r"[^\w .:$@+~=,^*\[\]()-]", re.ASCII)


def tool() -> str | None:
    """The installed flame graph program; None without one."""
    for name in ("inferno-flamegraph", "flamegraph.pl"):
        if path := shutil.which(name):
            return path
    return str(DEBIAN) if DEBIAN.is_file() else None


def fold_cpu(profile: CpuProfile) -> Counter[str]:
    """Folded stacks (root first, joined by `;`) -> microseconds or cycles of worker samples."""
    folded: Counter[str] = Counter()
    for root, table in (("kernel", profile.samples.workers), ("user", profile.samples.user)):
        for frames, periods in table.items():
            folded[_line(root, frames)] += periods
    return folded


def fold_offcpu(profile: OffCpuProfile) -> Counter[str]:
    """Folded stacks -> nanoseconds off the CPU."""
    folded: Counter[str] = Counter()
    for frames, nanoseconds in profile.stacks.items():
        folded[_line("off CPU", frames)] += nanoseconds
    return folded


def _line(root: str, frames: tuple[str, ...]) -> str:
    return ";".join([root, *(_FOREIGN.sub("_", frame) for frame in reversed(frames))])


def svg(folded: Counter[str], title: str, unit: str = "us", scale: int = 1000) -> str:
    """The flame graph of folded stacks, counts divided by `scale`.

    Raises MissingTool without a program, FscaleError when there is nothing to draw.
    """
    program = tool()
    if program is None:
        raise MissingTool(f"no flame graph program: install {PACKAGE}")
    lines = [f"{stack} {n // scale}" for stack, n in sorted(folded.items()) if n >= scale]
    if not lines:
        raise FscaleError(f"{title}: no samples")
    argv = [program, "--title", _FOREIGN_TITLE.sub("_", title), "--countname", unit]
    done = subprocess.run(
        argv,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0 or "<svg" not in done.stdout:
        raise FscaleError(f"{program} failed: {done.stderr.strip()[-200:]}")
    return done.stdout[done.stdout.index("<?xml") if "<?xml" in done.stdout else 0 :]


def still(drawn: str) -> str:
    """A flame graph without script and style: its frames still have their titles to point at.

    A page's Content Security Policy holds for its frames too, and would refuse both.
    """
    quiet = _REPEATED.sub("", _ACTING.sub("", drawn))
    return quiet.replace("<svg ", '<svg font-size="12" font-family="Verdana" ', 1)
