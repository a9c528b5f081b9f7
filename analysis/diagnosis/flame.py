# SPDX-License-Identifier: GPL-2.0-only
"""Draws flame graphs with Brendan Gregg's flamegraph.pl, as self-contained SVG files.

If inferno (a port in Rust with the same options and output) is installed, it is used instead.
"""

import re
import subprocess
from collections import Counter

from fscale.analysis.diagnosis.cpuprofile import CpuProfile
from fscale.analysis.diagnosis.offcpu import OffCpuProfile
from fscale.model.errors import FscaleError, MissingTool
from fscale.system.programs import FLAME_GRAPHS, found

PACKAGE = "libdevel-nytprof-perl"
# The programs write names into SVG, HTML and JavaScript, with different gaps in their quoting.
_FOREIGN = re.compile(r"[^\w.:$@+~=,/*\[\]-]", re.ASCII)
# The active parts of a flame graph, and its buttons.
_ACTING = re.compile(
    r"<(script|style)\b.*?</\1>|<text\b[^>]*\bid=\"(?:search|unzoom)\".*?</text>"
    r"|\bon\w+=\"[^\"]*\"",
    re.DOTALL,
)
# Attributes that flamegraph.pl repeats in each frame (half of the bytes); the visible ones are set
# once, at the root.
_REPEATED = re.compile(
    r' rx="2" ry="2"| class="func_g"| text-anchor=""| font-size="12"| font-family="Verdana"'
    r'| fill="rgb\(0,0,0\)"|<text [^>]*></text>\n'
)
_FOREIGN_TITLE = re.compile(r"[^\w .:$@+~=,^*\[\]()-]", re.ASCII)


def tool() -> str | None:
    """The path of the installed flame graph program; None if there is none."""
    return found(FLAME_GRAPHS)


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

    Raises MissingTool if no program is installed, FscaleError if there are no samples to draw.
    """
    program = tool()
    if program is None:
        raise MissingTool(f"no flame graph program is installed; install {PACKAGE}")
    lines = [f"{stack} {n // scale}" for stack, n in sorted(folded.items()) if n >= scale]
    if not lines:
        raise FscaleError(f"{title}: the profile has no samples to draw")
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
    """A flame graph without script and style, but with the tooltips of its frames.

    The page's Content Security Policy also applies to its iframes and would refuse both.
    """
    quiet = _REPEATED.sub("", _ACTING.sub("", drawn))
    return quiet.replace("<svg ", '<svg font-size="12" font-family="Verdana" ', 1)
