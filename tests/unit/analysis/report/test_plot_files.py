# SPDX-License-Identifier: GPL-2.0-only
"""The plots as files, for a paper: size, fonts, styles, what a figure shows, what is legible."""

import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from typer.testing import CliRunner

from fscale.analysis import fonts, sheets
from fscale.analysis.members import Member
from fscale.analysis.plotsettings import PlotSettings, read_style
from fscale.analysis.reader import load
from fscale.analysis.report import Report, build
from fscale.analysis.style import MARKERS, SERIES
from fscale.cli import app
from fscale.commands.options.plots import Per, PlotOptions
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import Folder
from tests.support.synthetic import cell, grid, write_run

pytestmark = pytest.mark.slow

COLUMN = 3.33  # inches of a column of USENIX and ACM
TIMES = "STIXGeneral"  # comes with matplotlib, and is made in the likeness of Times
WORKLOADS = ("DRBL", "DRBM", "DRBH", "MWCL", "MWRM")
FILESYSTEMS = ("tmpfs", "ext4", "xfs", "btrfs", "f2fs")
CORES = (1, 2, 4, 10, 20, 40, 60, 80)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells = [
        made.model_copy(update={"disturbed": "by others" if made.key.cores == 80 else None})
        for made in grid(CORES, 2, WORKLOADS, FILESYSTEMS)
    ]
    place = tmp_path_factory.mktemp("run")
    return write_run(place, cells, workloads=WORKLOADS, filesystems=FILESYSTEMS, cpus=80)


@pytest.fixture(scope="module")
def report(run: Path) -> Report:
    return Report((Member(load(run)),), run, paper=True)


def save(report: Report, out: Path, settings: PlotSettings) -> Path:
    sheets.save(report.pages, report.lines, Folder(out), settings)
    return out / "plots"


def texts(figure: Figure, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Text, Bbox]]:
    """What a figure shows as text when it is drawn, and where in points."""
    shown: dict[Text, Bbox] = {}
    draw: Any = Text.draw

    def record(self: Text, renderer: Any, *args: Any, **more: Any) -> None:
        if self.get_visible() and self.get_text():
            shown[self] = self.get_window_extent(renderer)
        draw(self, renderer, *args, **more)

    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    with monkeypatch.context() as patched:
        patched.setattr(Text, "draw", record)
        figure.savefig(io.BytesIO(), format="pdf", dpi=72)
    return list(shown.items())


def figures(report: Report, settings: PlotSettings) -> Iterator[tuple[str, Figure]]:
    (page,) = report.pages
    with mpl.rc_context(dict(settings.rc)):
        yield from sheets.figures(page, report.lines, settings)


STYLES: list[dict[str, Any]] = [
    {},
    {"font": TIMES},
    {"font": TIMES, "size": 10},
    {"styles": ["seaborn-v0_8-paper"]},
    {"styles": ["classic"]},
    {"styles": ["seaborn-v0_8-paper", "ggplot"], "font": TIMES, "size": 7},
]


@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize(("width", "per"), [(COLUMN, "group"), (7, "all")])
def test_nothing_is_cut_and_no_text_lies_over_another(
    report: Report, monkeypatch: pytest.MonkeyPatch, width: float, per: Any, style: dict[str, Any]
) -> None:
    settings = PlotSettings(width, per=per, rc=read_style(**style))
    for stem, figure in figures(report, settings):
        shown = texts(figure, monkeypatch)
        paper = Bbox.from_extents(0, 0, *(72 * figure.get_size_inches()))
        assert paper.width <= 72 * width + 1e-6
        for text, box in shown:
            assert Bbox.union([paper, box]).extents == pytest.approx(paper.extents), (stem, text)
        # A slanted text is not as large as the box around it.
        straight = [(text, box) for text, box in shown if text.get_rotation() in (0, 90)]
        for (one, here), (other, there) in combinations(straight, 2):
            over = Bbox.intersection(here, there)
            assert over is None or min(over.width, over.height) < 0.5, (stem, one, other)
        for line in (line for ax in figure.axes for line in ax.lines):
            if line.get_marker() in MARKERS:
                assert line.get_window_extent().x0 >= 0
                assert line.get_window_extent().x1 <= figure.bbox.x1


def test_long_names_are_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = []
    for made in grid((1, 2, 4), 1, ("DRBL", "DRBM"), ("ext4", "xfs")):
        name = f"{made.key.filesystem} with a name and options that nobody would give it"
        changes = {"filesystem": name, "options": {"keep": 0, "of": 20 * "xy"}}
        cells.append(cell(made.key.model_copy(update=changes), 1000.0 * made.key.cores))
    run = write_run(tmp_path, cells, workloads=("DRBL", "DRBM"), filesystems=())
    report = Report((Member(load(run)),), run)
    for _, figure in figures(report, PlotSettings(COLUMN)):
        for text, box in texts(figure, monkeypatch):
            assert -0.5 <= box.x0 <= box.x1 <= COLUMN * 72 + 0.5, text


@pytest.mark.parametrize("style", STYLES[1:3], ids=str)
def test_a_quarter_of_a_page_has_room_for_a_workload(
    report: Report, monkeypatch: pytest.MonkeyPatch, style: dict[str, Any]
) -> None:
    settings = PlotSettings(2.1, 1.4, per="workload", rc=read_style(**style))
    for _, figure in figures(report, settings):
        for _, box in texts(figure, monkeypatch):
            assert 0 <= box.x0 <= box.x1 <= 2.1 * 72


def media_box(pdf: Path) -> tuple[float, float]:
    found = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf.read_bytes())
    assert found
    return float(found[1]) / 72, float(found[2]) / 72


def test_a_figure_has_the_width_that_was_asked_for(report: Report, tmp_path: Path) -> None:
    for width, of_three in ((COLUMN, COLUMN), (7, 0.75 * 7)):
        plots = save(report, tmp_path / str(width), PlotSettings(width))
        assert media_box(plots / "data-reads.pdf")[0] == pytest.approx(of_three, abs=1e-3)
        plots = save(report, tmp_path / f"{width} each", PlotSettings(width, per="workload"))
        assert media_box(plots / "DRBL.pdf")[0] == pytest.approx(width, abs=1e-3)


FONT = re.compile(rb"/BaseFont /(?:[A-Z]{6}\+)?([\w-]+)")


def embedded(pdf: Path) -> set[str]:
    """The fonts of a PDF file, all of which are embedded as Type 42."""
    content = pdf.read_bytes()
    assert b"/Type3" not in content
    assert b"/Type1" not in content
    assert content.count(b"/FontFile2") == content.count(b"/CIDFontType2") > 0
    if shutil.which("pdffonts"):
        said = subprocess.run(["pdffonts", pdf], check=True, capture_output=True, text=True)
        assert not said.stderr
        for line in said.stdout.splitlines()[2:]:
            assert re.search(r" CID TrueType +\S+ +yes ", line), line
    return {name.decode() for name in FONT.findall(content)}


@pytest.mark.parametrize(
    ("style", "family"), [({}, "DejaVuSans"), ({"font": TIMES}, TIMES)], ids=str
)
def test_fonts_are_embedded_as_type_42(
    report: Report, tmp_path: Path, style: dict[str, Any], family: str
) -> None:
    for pdf in save(report, tmp_path, PlotSettings(COLUMN, rc=read_style(**style))).glob("*.pdf"):
        assert {name.partition("-")[0] for name in embedded(pdf)} == {family}


@pytest.mark.filterwarnings("error")
def test_a_character_that_a_font_lacks_comes_from_another(tmp_path: Path) -> None:
    cells = grid((1, 2), 1, ("DRBL",), ("ext4",)) + grid((1,), 1, ("DRBL",), ("xfs",))
    run = write_run(tmp_path, cells, workloads=("DRBL",))
    build(run, plots=PlotSettings(rc=read_style(font="STIXSizeOneSym")))
    assert "DejaVuSans" in embedded(tmp_path / "plots" / "matrix.pdf")  # its dagger


def test_a_figure_shows_what_was_asked_for(report: Report) -> None:
    def stems(per: Any) -> set[str]:
        return {stem for stem, _ in figures(report, PlotSettings(per=per))}

    def with_cpu(*names: str) -> set[str]:
        return {"matrix", *names, *(f"{name}-cpu" for name in names)}

    assert stems("group") == with_cpu("data-reads", "metadata-writes")
    assert stems("workload") == with_cpu(*WORKLOADS)
    assert stems("all") == with_cpu("workloads")


def test_a_legend_has_the_marks_of_its_own_figure(report: Report) -> None:
    marked = {
        stem: any(text.get_text().startswith("turn ") for text in figure.legends[0].get_texts())
        for stem, figure in figures(report, PlotSettings(COLUMN, per="workload"))
        if stem in WORKLOADS
    }
    assert marked == {panel.name: bool(panel.turns) for panel in report.pages[0].panels}
    assert set(marked.values()) == {True, False}


def test_workloads_whose_names_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    cells = []
    for made in grid((1,), 1, ("DRBL",), ("ext4",)):
        for options in ({"of": "a b"}, {"of": "a/b"}, {"of": "../b"}):
            key = made.key.model_copy(update={"options": options})
            cells.append(cell(key, 1000.0))
    run = write_run(tmp_path, cells, workloads=("DRBL",))
    build(run, plots=PlotSettings(per="workload"))
    assert {p.stem for p in (tmp_path / "plots").glob("*.pdf") if "cpu" not in p.name} == {
        "DRBL-of=..-b", "DRBL-of=a-b", "DRBL-of=a-b-2", "sweep-DRBL-on-ext4-by-of",
    }  # fmt: skip


@pytest.mark.parametrize(("width", "columns", "of_them"), [(COLUMN, 1, 1), (7, 2, 2), (7, None, 3)])
def test_workloads_beside_one_another(
    report: Report, width: float, columns: int | None, of_them: int
) -> None:
    (_, figure), *_ = figures(report, PlotSettings(width, columns=columns))
    figure.draw_without_rendering()
    row = figure.axes[0].get_position().y0
    assert sum(abs(ax.get_position().y0 - row) < 0.01 for ax in figure.axes) == of_them


def test_a_row_of_curves_has_the_height_that_was_asked_for(report: Report) -> None:
    def height(**asked: Any) -> float:
        return next(figure for _, figure in figures(report, PlotSettings(**asked))).get_figheight()

    assert height() == pytest.approx(height(height=1.7))
    assert height(rc=read_style(["seaborn-v0_8-poster"])) > height(height=2)
    assert height(height=2.5) - height(height=1.5) == pytest.approx(1)
    assert height(height=2.5, columns=1) - height(height=1.5, columns=1) == pytest.approx(3)


def test_no_style_takes_meaning_from_markers_or_the_fonts_from_a_file(
    report: Report, tmp_path: Path
) -> None:
    style = tmp_path / "careless.mplstyle"
    style.write_text(
        "pdf.fonttype: 3\npdf.use14corefonts: True\ntext.usetex: True\nsavefig.bbox: tight\n"
        "lines.marker: *\nmarkers.fillstyle: none\nlines.markerfacecolor: white\n"
        "axes.prop_cycle: cycler('color', ['ff0000'])\nlines.linewidth: 3.25\n"
    )
    settings = PlotSettings(COLUMN, rc=read_style([str(style)]))
    pdf = save(report, tmp_path, settings) / "data-reads.pdf"
    assert embedded(pdf)
    assert media_box(pdf)[0] == pytest.approx(COLUMN, abs=1e-3)
    drawn = pdf.with_suffix(".svg").read_text()
    assert "stroke-width: 3.25" in drawn
    for colour in ("black", "blue", "vermillion", "green"):
        assert SERIES[colour].light in drawn  # type: ignore[index]
    assert "stroke: #ff0000" not in drawn
    plain = save(report, tmp_path / "plain", PlotSettings(COLUMN)) / "data-reads.svg"
    hollow = re.compile(r"<use [^>]*fill: #ffffff")
    assert len(hollow.findall(drawn)) == len(hollow.findall(plain.read_text())) > 0
    assert drawn.count("<use ") == plain.read_text().count("<use ")


def test_a_file_system_looks_the_same_in_every_figure(report: Report) -> None:
    looks: dict[str, set[tuple[Any, Any]]] = {}
    for _, figure in figures(report, PlotSettings(per="workload", rc=read_style(["ggplot"]))):
        for legend in figure.legends:
            for handle, label in zip(legend.legend_handles, legend.get_texts(), strict=True):
                if label.get_text() in FILESYSTEMS:
                    look: Any = handle
                    known = looks.setdefault(label.get_text(), set())
                    known.add((look.get_color(), look.get_marker()))
    assert sorted(looks) == sorted(FILESYSTEMS)
    assert all(len(known) == 1 for known in looks.values())
    assert len(set.union(*looks.values())) == len(FILESYSTEMS)


def test_the_last_style_wins_and_the_options_over_it(tmp_path: Path) -> None:
    for name, size in (("one", 6), ("two", 11)):
        (tmp_path / name).write_text(f"xtick.labelsize: {size}\nfont.family: serif\n")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    assert read_style([one, two])["xtick.labelsize"] == 11
    assert read_style([two, one])["xtick.labelsize"] == 6
    assert read_style([one])["font.family"] == ["DejaVu Serif", "DejaVu Sans"]
    assert read_style(["ggplot"])["xtick.labelcolor"] == "inherit"
    options = read_style([one], font=TIMES, size=9)
    assert options["font.family"] == [TIMES, "DejaVu Sans"]
    assert options["xtick.labelsize"] == 9


STYLE_FILES = {
    "key": "lines.linewidht: 3",
    "value": "lines.linewidth: thick",
    "no-colon": "just text",
    "no-font": "font.family: Nobody Has This",
    "binary": b"\xff\xfe",
}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--plot-width", "0in"], "--plot-width 0in: .* at least 1.5in"),
        (["--plot-width", "100000in"], "--plot-width 100000in: .* at most 50in"),
        (["--plot-height", "0.5in"], "--plot-height 0.5in: .* at least 1in"),
        (["--plot-width", "3.33"], "one of the units in, cm, mm, pt"),
        (["--plot-width", "3em"], "one of the units"),
        (["--plot-width", "-3in"], "one of the units"),
        (["--plot-width", "nanin"], "one of the units"),
        (["--plot-width", ""], "one of the units"),
        (["--plot-width", "85mm", "--plot-columns", "3"], "room for 2 in 3.35in"),
        (["--plot-width", "85mm", "--font-size", "20"], "text of 20 points needs at least 3.75in"),
        (["--font", "Tmes"], "no font Tmes is installed"),
        (["--font", "STIX Genral"], "such as STIXGeneral"),
        (["--font", ""], "is installed"),
        (["--plot-style", "seaborn-paper"], "did you mean seaborn-v0_8-paper"),
        (["--plot-style", "/nowhere"], "No such file"),
        (["--plot-style", "/"], "Is a directory"),
        (["--plot-style", "key"], "no setting lines.linewidht; did you mean .*lines.linewidth"),
        (["--plot-style", "value"], "lines.linewidth: Could not convert 'thick'"),
        (["--plot-style", "no-colon"], "no setting just text"),
        (["--plot-style", "no-font"], "no-font: no font Nobody Has This is installed"),
        (["--plot-style", "binary"], "can't decode"),
        (["--plot-style", "dark_background"], "its figure.facecolor is too dark"),
        (["--plot-per", "workload", "--plot-columns", "2"], "--plot-columns: not supported"),
        (["--no-plots", "--font", TIMES], "--font: not supported with --no-plots"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in STYLE_FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["report", str(run), "--output", str(out), *options])
    assert isinstance(done.exception, FscaleError), (done.output, done.exception)
    assert done.exception.code == Exit.USAGE
    assert re.search(words, str(done.exception))
    assert "\n" not in str(done.exception)
    assert not out.exists()


def test_the_command_draws_as_it_was_asked(run: Path, tmp_path: Path) -> None:
    asked = ["--plot-width", "84.6mm", "--plot-per", "workload", "--font", TIMES]
    asked += [
        "--plot-style",
        "ggplot",
        "--plot-style",
        "seaborn-v0_8-paper",
        "--plot-height",
        "4cm",
    ]
    done = CliRunner().invoke(app, ["report", str(run), "--output", str(tmp_path), *asked])
    assert done.exit_code == 0, done.output
    pdf = tmp_path / "plots" / "MWCL.pdf"
    assert media_box(pdf)[0] == pytest.approx(84.6 / 25.4, abs=1e-3)
    assert {name.partition("-")[0] for name in embedded(pdf)} == {TIMES}


def test_a_figure_of_one_workload_is_as_wide_as_a_column() -> None:
    assert PlotOptions(plot_per=Per.WORKLOAD).settings.width == pytest.approx(COLUMN)
    assert PlotOptions().settings.width == 7


def renamed(family: str, path: Path) -> None:
    """Write a font that differs from DejaVu Sans in its name."""
    source = font_manager.findfont("DejaVu Sans")
    with TTFont(source) as font:
        for record in font["name"].names:
            if record.nameID in (1, 4, 6, 16):
                record.string = family
        font.save(path)


def test_a_font_that_was_installed_since_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    renamed("Planted Roman", tmp_path / "planted.ttf")
    (tmp_path / "broken.ttf").write_bytes(b"\0\1\0\0 no font")
    with pytest.raises(FscaleError, match="no font Planted Roman"):
        read_style(font="Planted Roman")
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [str(p) for p in tmp_path.iterdir()])
    assert read_style(font="planted roman")["font.family"] == ["planted roman", "DejaVu Sans"]


def test_a_font_that_type_42_cannot_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = FontBuilder(1000, isTTF=False)
    built.setupGlyphOrder([".notdef", "a"])
    built.setupCharacterMap({ord("a"): "a"})
    pen = T2CharStringPen(500, None)
    pen.moveTo((0, 0))
    pen.lineTo((0, 500))
    pen.lineTo((500, 0))
    pen.closePath()
    shape = pen.getCharString()
    built.setupCFF("Planted", {}, {".notdef": shape, "a": shape}, {})
    built.setupHorizontalMetrics({".notdef": (500, 0), "a": (500, 0)})
    built.setupHorizontalHeader(ascent=800, descent=-200)
    built.setupNameTable({"familyName": "Planted Outlines", "styleName": "Regular"})
    built.setupOS2()
    built.setupPost()
    built.save(tmp_path / "planted.otf")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    font_manager.fontManager.addfont(tmp_path / "planted.otf")
    with pytest.raises(FscaleError, match=r"Planted Outlines has PostScript outlines.*TrueType"):
        read_style(font="Planted Outlines")
