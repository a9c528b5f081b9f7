# SPDX-License-Identifier: GPL-2.0-only
"""Commands on results directories that a stranger made."""

import base64
import contextlib
import csv
import gzip
import io
import json
import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kcidb_io.schema import V5_3
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fscale.analysis.formats.tables import TABLES
from fscale.analysis.report import build, interactive  # noqa: F401 - imported before the fork
from fscale.analysis.report.render import TEMPLATES
from fscale.analysis.vega import library
from fscale.commands.options.formats import Format
from fscale.model.files import Folder, unpack, write_named
from fscale.model.results import Command
from fscale.model.store import Store
from tests.support import synthetic
from tests.support.hostile import Done, Page, bomb, good, rename, run, snapshot
from tests.support.synthetic import cell, grid, sliced, usl_rate, write_run

pytestmark = pytest.mark.slow

# `make fuzz` sets it to what a night has room for.
EXAMPLES = int(os.environ.get("FSCALE_FUZZ", "5"))
EXITS = {0, 1, 2, 77}
SCRIPT = (TEMPLATES / "report.js").read_text()
SCRIPTS = [SCRIPT, str(library()), str(interactive.scripts())]


KEY = synthetic.key(workload="DWOM")


def ran(argument: str) -> Command:
    return Command(argv=[argument], seconds=1, returncode=0)


class Place:
    """A stranger's directory, and beside it what must not change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = root / "results"
        self.outside = root / "outside"
        self.scratch = root / "scratch"
        for path in (self.outside / "directory", self.scratch):
            path.mkdir(parents=True)
        (self.outside / "file").write_text("precious\n")
        (self.outside / "directory" / "file").write_text("precious\n")
        (self.outside / "secret.json").write_text('{"output": "secret"}')
        self.before = snapshot(self.outside)
        self.second = root / "second"
        faster = grid([1, 2], 12, ["DWOM"], ["ext4"], rate=lambda key: 3 * usl_rate(key))
        write_run(self.second, faster, workloads=["DWOM"], filesystems=["ext4"])

    def fscale(self, *arguments: object) -> Done:
        """A command must end in time with an exit code of ours, and change nothing outside."""
        done = run(self.scratch, *arguments)
        said = done.output + done.error
        assert done.code in EXITS, (arguments, done)
        assert "Traceback" not in said, (arguments, done)
        assert "\x1b" not in said, (arguments, done)
        if done.code == 2:
            assert len(done.error.splitlines()) == 1, (arguments, done)
            assert done.error.startswith("fscale: "), (arguments, done)
        assert snapshot(self.outside) == self.before, arguments
        return done

    def commands(self, other: Path) -> dict[str, list[object]]:
        """Every command that reads results, on these."""
        out, db = self.scratch / "out", ["--db", self.scratch / "history.sqlite"]
        out.mkdir(exist_ok=True)
        return {
            "locks": ["locks", self.results, "--stacks", "--flames", out / "flames"],
            "markdown": ["compare", self.results, "--markdown", "-", *db],
            "junit": ["compare", self.results, other, "--junit", out / "junit", *db],
            "mail": ["compare", self.results, other, "--mail", "-", *db],
            "json": ["compare", self.results, other, "--json", *db],
            "html": ["compare", other, self.results, "--html", out / "compare.html", "--all", *db],
            "add": ["history", "add", other, self.results, *db],
            "list": ["history", "list", *db],
            "tag": ["history", "tag", self.results, "new", *db],
            "rebuild": ["history", "rebuild", self.root / "results", *db],
            "report": ["report", self.results],
            "runs": ["report", self.results, f"{self.second}=2", "--output", out / "runs"],
            "pairs": ["compare", self.results, "--html", out / "pairs.html", *db],
            "show": ["show", self.results],
            "predict": ["predict", self.results, "--dry-run"],
            "reproduce": ["reproduce", "fxmark", "--run", self.results],
            **{
                form: ["export", self.results, "--format", form, "--output", out / f"run.{form}"]
                for form in Format
            },
            **{
                f"table-{name}": [
                    *("export", self.results, f"{self.second}=2", "--format", "csv"),
                    *("--table", name, "--output", out / f"run.{name}.csv"),
                ]
                for name in TABLES
            },
        }

    def try_commands(self, other: Path, *names: str) -> None:
        """The named commands, or all of them."""
        commands = self.commands(other)
        for name in names or commands:
            self.fscale(*commands[name])
        out = self.scratch / "out"
        pages = [out / name for name in ("compare.html", "pairs.html", "runs/report.html")]
        pages += [self.results / name for name in ("report.html", "reproduced.html")]
        for page in pages:
            if page.is_file() and not page.is_symlink():
                harmless(page.read_text())
        for drawn in [*(out / "flames").glob("*.svg"), *self.results.glob("plots/**/*.svg")]:
            if drawn.is_file() and not drawn.is_symlink():
                harmless_svg(drawn.read_text())
        if (out / "junit").exists():
            ElementTree.parse(out / "junit")
        for exported in out.glob("run.*"):
            well_formed(exported)


def well_formed(exported: Path) -> None:
    """What goes to other programs is what it claims to be."""
    if exported.suffix == ".parquet":
        pd.read_parquet(exported)
        return
    text = exported.read_text()
    match exported.suffix:
        case ".json" | ".google-benchmark":
            json.loads(text)
        case ".kcidb":
            V5_3.validate(json.loads(text))
        case ".junit":
            ElementTree.fromstring(text)
        case ".openmetrics":
            list(text_string_to_metric_families(text))
        case ".csv":
            rows = list(csv.reader(io.StringIO(text, newline="")))
            assert all(len(row) == len(rows[0]) for row in rows)
            assert not any(cell.startswith(("=", "@")) for row in rows for cell in row)
        case ".ktap":
            assert re.fullmatch(r"(( {2})?(KTAP version 1|1\.\.\d+|#.*|(not )?ok \d+.*)\n)+", text)


def harmless(text: str) -> None:
    """A page has our scripts and nothing else that acts, and says so to the browser."""
    page = Page(text)
    assert page.acting == []
    assert page.scripts in ([SCRIPT], SCRIPTS)
    (said,) = page.policies
    assert "<meta http-equiv" in text[:200]
    assert said.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in said.replace("style-src-attr 'unsafe-inline'", "")
    assert said.count("'sha256-") == len(page.scripts) + 1
    for frame in page.frames:
        drawn = base64.b64decode(frame.partition("base64,")[2]).decode()
        assert not re.search(r"<script|\bon\w+=", drawn)
        harmless_svg(drawn)


def harmless_svg(text: str) -> None:
    """A drawing is whole, and handlers in it are those of the program that drew it."""
    root = ElementTree.fromstring(text)
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.startswith("on"):
                assert re.fullmatch(r"[\w.]+\([\w.',:; \[\]%()/+~@$=*#&-]*\);?", value), value
            if name.endswith("href"):
                assert value.startswith("#"), value


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good(tmp_path_factory.mktemp("good") / "results")


@pytest.fixture
def place(tmp_path: Path, original: Path) -> Place:
    made = Place(tmp_path)
    shutil.copytree(original, made.results)
    return made


def first_cell(place: Place) -> Path:
    return min((place.results / "cells").iterdir())


def test_a_good_directory_gives_all(place: Place, original: Path) -> None:
    for name in ("report", "locks", "add", "rebuild"):
        assert place.fscale(*place.commands(original)[name]).code == 0
    place.try_commands(original, "list")
    assert (place.results / "plots" / "matrix.svg").is_file()
    assert list((place.scratch / "out" / "flames").glob("*.svg"))


def test_nothing_is_written_through_a_link(place: Place, original: Path) -> None:
    names = ["report.html", "figures.csv", "figures.json", ".report.html.tmp", ".figures.csv.tmp"]
    names += ["plots/matrix.svg", "plots/matrix.pdf", "tags.tmp", ".tags.json.tmp"]
    (place.results / "plots").mkdir()
    for name in names:
        (place.results / name).symlink_to(place.outside / "file")
    place.try_commands(original, "tag", "report")
    assert (place.results / "report.html").stat().st_nlink == 1
    assert not (place.results / "report.html").is_symlink()
    shutil.rmtree(place.results / "plots")
    (place.results / "plots").symlink_to(place.outside / "directory")
    done = place.fscale("report", place.results)
    assert done.code == 2
    assert "it is a link" in done.error


@pytest.mark.parametrize("name", ["run.json", "cells", "ab.json", "tags.json"])
def test_nothing_is_read_through_a_link(place: Place, original: Path, name: str) -> None:
    (place.results / "ab.json").write_text('{"base": "a", "new": "b", "looks": []}')
    (place.results / name).rename(place.root / "moved")
    (place.results / name).symlink_to(place.root / "moved")
    commands = {"ab.json": ["compare"], "tags.json": ["history", "add"]}
    db = ["--db", place.scratch / "db"]
    done = place.fscale(*commands.get(name, ["report"]), place.results, *(db if name > "s" else []))
    assert done.code == 2
    assert "it is a link" in done.error


def test_a_file_that_the_user_names_is_no_link(place: Place, original: Path) -> None:
    link = place.results / "compare.html"
    link.symlink_to(place.outside / "file")
    for form in ("html", "junit", "ktap", "mail", "markdown"):
        done = place.fscale("compare", original, place.results, f"--{form}", link)
        assert done.code == 2
        assert "it is a link" in done.error
    done = place.fscale("locks", place.results, "--markdown", link)
    assert done.code == 2
    assert "it is a link" in done.error
    with pytest.raises(OSError, match="it is a link"):
        write_named(link, "text")
    write_named(Path("/dev/null"), "text")


@pytest.mark.parametrize("path", ["../../outside/secret.json.gz", "/etc/shadow", "profiles", ""])
def test_a_profile_lies_in_the_directory(place: Place, original: Path, path: str) -> None:
    (place.outside / "secret.json.gz").write_bytes(gzip.compress(b'{"output": "secret"}'))
    place.before = snapshot(place.outside)
    for file in (place.results / "cells").iterdir():
        content = json.loads(file.read_text())
        content["profiles"] = dict.fromkeys(content["profiles"], path)
        file.write_text(json.dumps(content))
    done = place.fscale("locks", place.results)
    assert "cannot be used" in done.output
    assert "secret" not in done.output.replace(path, "")
    place.try_commands(original, "locks")


def test_a_kilobyte_does_not_unpack_to_a_gigabyte(place: Place) -> None:
    packed = bomb(64)
    assert len(packed) < 1 << 20
    with pytest.raises(ValueError, match="unpacks to more than"):
        unpack(packed)
    for file in (place.results / "profiles").rglob("*.gz"):
        file.write_bytes(packed)
    done = place.fscale("locks", place.results)
    assert "it unpacks to more than" in done.output


def test_deep_json_is_an_error_and_no_crash(place: Place, original: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    for file in (place.results / "profiles").rglob("*.gz"):
        file.write_bytes(gzip.compress(f'{{"output": {deep}}}'.encode()))
    (place.results / "tags.json").write_text(deep)
    (place.results / "ab.json").write_text(deep)
    first = first_cell(place)
    first.write_text(first.read_text().replace('"extra":{}', f'"extra":{{"a":{deep}}}'))
    place.try_commands(original, "locks", "markdown", "tag", "report")


NAMES = [
    "a\\b",
    "\\1\\g<0>",
    "[bold]x[/bold]",
    "[/x]",
    "$\\frac{1}{2}$",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "');alert(1)('",
    "javascript:alert(1)",
    "{{7*7}}{% raw %}",
    "<b onclick=alert(1)>",
    "=HYPERLINK(1)",
    "a|b`c`",
    "\u202egnp",
    "x\x1b[2J\x1b]0;title\x07",
    "ä" * 30,
    "..",
    "-rf",
]


def test_names_are_shown_and_not_obeyed(tmp_path: Path, original: Path) -> None:
    place = Place(tmp_path)
    cells = [
        cell(key, 1000.0 * key.cores, reason=name, disturbed=name, commands=[ran(name)])
        for name in NAMES
        if name.isprintable() and "/" not in name
        for field in ("workload", "filesystem")
        for cores in (1, 2)
        if (key := KEY.model_copy(update={field: name, "cores": cores, "medium": "m\\m"}))
    ]
    every = " ".join(NAMES)
    content = json.loads((original / "run.json").read_text())
    machine = {**content["machine"], "hostname": every, "kernel": every, "cpu_model": every}
    run_ids = {"id": every, "command": NAMES, "warnings": NAMES}
    named = {"machine": machine, "filesystems": NAMES, "workloads": ["DWOM"]}
    write_run(place.results, [c for c in cells if len(c.id) < 200], **run_ids, **named)
    labels = {"base": every, "new": every, "looks": []}
    (place.results / "ab.json").write_text(json.dumps(labels))
    place.try_commands(original)
    page = (place.results / "report.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b onclick=alert(1)&gt;" in page
    assert "a\\b" in page


def test_comparisons_show_names_and_do_not_obey_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    every = " ".join(NAMES)
    keys = [
        KEY.model_copy(update={"workload": name, "filesystem": "f\\s", "repetition": n})
        for name in ("<b onclick=alert(1)>", "[red]", "a|b`c`", "\\1")
        for n in range(1, 15)
    ]
    machine = write_run(place.results, [cell(key, 1000.0 + key.repetition) for key in keys])
    content = json.loads((machine / "run.json").read_text())
    content["machine"] |= {"hostname": every, "kernel": every}
    (machine / "run.json").write_text(json.dumps(content))
    other = tmp_path / "other"
    write_run(other, [cell(key, 500.0 + key.repetition) for key in keys])
    for name in ("html", "junit", "ktap", "mail", "markdown", "json"):
        arguments = [place.commands(other)["html"][0], place.results, other]
        form = {"mail": ["-"], "markdown": ["-"], "json": []}.get(name, [tmp_path / name])
        done = place.fscale(*arguments, f"--{name}", *form)
        assert done.code == 1, done
        assert "<b onclick" not in (done.output if name == "markdown" else "")
    harmless((tmp_path / "html").read_text())
    assert "&lt;b onclick=alert(1)&gt;" in (tmp_path / "html").read_text()
    ElementTree.parse(tmp_path / "junit")
    well_formed((tmp_path / "ktap").rename(tmp_path / "compare.ktap"))
    done = place.fscale("compare", place.results, other, "--all")
    assert "[red]" in done.output


def test_pages_of_several_runs_and_of_pairs_show_names_and_do_not_obey_them(
    tmp_path: Path, original: Path
) -> None:
    place = Place(tmp_path)
    every = " ".join(NAMES)
    keys = [
        KEY.model_copy(update={"workload": name, "filesystem": "f\\s", "repetition": n, "side": s})
        for name in ("<b onclick=alert(1)>", "a|b`c`")
        for n in range(1, 9)
        for s in "AB"
    ]
    cells = [sliced(key, [1000.0 + key.repetition + i for i in range(8)]) for key in keys]
    write_run(place.results, cells, id=every, command=NAMES, warnings=NAMES)
    content = json.loads((place.results / "run.json").read_text())
    content["machine"] |= {"hostname": every, "kernel": every, "cpu_model": every}
    (place.results / "run.json").write_text(json.dumps(content))
    record = {"base": every, "new": every, "looks": []}
    (place.results / "ab.json").write_text(json.dumps(record))
    place.try_commands(original, "runs", "pairs")
    for name in ("runs/report.html", "pairs.html"):
        page = (place.scratch / "out" / name).read_text()
        assert "&lt;b onclick=alert(1)&gt;" in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_time_that_is_none_is_an_error(place: Place) -> None:
    content = json.loads((place.results / "run.json").read_text())
    (place.results / "run.json").write_text(json.dumps(content | {"started": "yesterday"}))
    done = place.fscale("report", place.results)
    assert done.code == 2
    assert "started: Value error, Invalid isoformat string" in done.error


def test_unprintable_names_make_no_cell(place: Place) -> None:
    content = json.loads(first_cell(place).read_text())
    content["key"]["filesystem"] = "x\x1b[2J"
    first_cell(place).write_text(json.dumps(content))
    place.fscale("report", place.results)
    assert "characters that cannot be printed" in (place.results / "report.html").read_text()


def test_symbols_of_a_profile_are_shown_and_not_obeyed(place: Place, original: Path) -> None:
    for file in (place.results / "profiles").rglob("*.gz"):
        content = json.loads(gzip.decompress(file.read_bytes()))
        names = iter(NAMES * 10)
        symbols = sorted(set(re.findall(r"\b[a-z0-9_]{12,}\b", content["output"])))[:150]
        chosen = {symbol: next(names) for symbol in symbols if "slowpath" not in symbol}
        inner = "cpu" not in file.name  # the others' output is JSON
        for symbol, name in chosen.items():
            text = json.dumps(name)[1:-1] if inner else name
            content["output"] = content["output"].replace(symbol, text)
        file.write_bytes(gzip.compress(json.dumps(content).encode()))
    place.try_commands(original, "locks", "junit", "report")


def test_a_tag_that_another_run_has_stays_there(place: Place, original: Path) -> None:
    db = place.scratch / "db"
    ours = place.root / "ours"
    write_run(ours, grid([1], 1, ["DWOM"], ["ext4"]), id="ours")
    assert place.fscale("history", "tag", ours, "good", "--db", db).code == 0
    (place.results / "tags.json").write_text('["good", "theirs"]')
    added = place.fscale("history", "add", place.results, "--db", db)
    assert "tag good" in added.error and "`fscale history tag`" in added.error
    assert place.fscale("history", "path", "good", "--db", db).output.strip() == str(ours)
    theirs = place.fscale("history", "path", "theirs", "--db", db).output.strip()
    assert theirs == str(place.results)
    rebuilt = place.fscale("history", "rebuild", place.root, "--db", db)
    assert f"tag good of {place.results} is left out because it belongs to {ours}" in rebuilt.error
    assert place.fscale("history", "path", "good", "--db", db).output.strip() == str(ours)
    db.unlink()
    rebuilt = place.fscale("history", "rebuild", place.root, "--db", db)
    assert "several runs claim it" in rebuilt.error
    assert place.fscale("history", "path", "good", "--db", db).code == 2


def test_a_name_that_several_runs_have_is_refused(place: Place, original: Path) -> None:
    db = place.scratch / "db"
    ours = place.root / "ours"
    write_run(ours, grid([1], 1, ["DWOM"], ["ext4"]), id="synthetic")
    assert place.fscale("history", "add", ours, place.results, "--db", db).code == 0
    done = place.fscale("history", "tag", "synthetic", "x", "--db", db)
    assert done.code == 2
    assert "several runs have the id synthetic" in done.error
    assert place.fscale("history", "tag", ours, "x", "--db", db).code == 0


def test_a_run_that_goes_on_writes_into_its_own_directory(place: Place) -> None:
    store = Store(place.results)
    loaded = store.load_run()
    assert loaded is not None
    stored = store.cells()[0]
    profile = store.profile_dir(stored.id)
    for path in (
        profile,
        place.results / "cells" / f"{stored.id}.json",
        place.results / "run.json",
    ):
        if path.is_file():
            path.unlink()
        target = "directory" if path == profile else "file"
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(place.outside / target)
    store.save_run(loaded)
    store.save_cell(stored)
    made = store.fresh_profile_dir(stored.id)
    (made / "locks.json.gz").write_bytes(b"")
    assert snapshot(place.outside) == place.before
    assert store.load_cell(stored.key) == stored
    (made / "perf.data").symlink_to(place.outside / "file")
    assert list(store.fresh_profile_dir(stored.id).iterdir()) == []
    for name in ("cells", "profiles"):
        shutil.rmtree(place.results / name)
        (place.results / name).symlink_to(place.outside / "directory")
    with pytest.raises(OSError, match="it is a link"):
        store.save_cell(stored)
    with pytest.raises(OSError, match="it is a link"):
        store.fresh_profile_dir(stored.id)
    assert snapshot(place.outside) == place.before
    assert store.load_cell(stored.key) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../file", "leads out of"),
        ("a/../../file", "leads out of"),
        ("/etc/passwd", "leads out of"),
        ("", "leads out of"),
        ("a\0b", "not a valid file name"),
        ("pipe", "not a regular file"),
        ("large", "larger than 1 MiB"),
    ],
)
def test_only_files_of_the_folder_are_read(tmp_path: Path, name: str, says: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match=says):
        Folder(tmp_path).read(name, 1 << 20)


# The fuzzer proper: one or two changes to a good directory, then every command.

Factory = pytest.TempPathFactory
TEXTS = st.one_of(st.sampled_from(NAMES), st.text(max_size=30))
VALUES: st.SearchStrategy[Any] = st.one_of(
    TEXTS,
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1 << 40, 10**30, 1e308, 5e-324, -0.0, float("inf"), float("nan")]),
    st.just([]),
    st.just({}),
    st.just([[[[]]]]),
    st.dictionaries(TEXTS, TEXTS, max_size=2),
    st.lists(st.integers(-5, 5), max_size=3),
)
FILES = ["run.json", "cell", "cells", "profiles", "profile", "tags.json", "ab.json", "report.html"]
FILES += ["predictions.json", "figures.csv", "plots", "plots/matrix.svg", ".report.html.tmp"]


def change_json(draw: Callable[[Any], Any], data: Any) -> Any:
    """Replace, remove or add one value somewhere."""
    if isinstance(data, dict) and data and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(data)))
        if draw(st.integers(0, 9)) == 0:
            return {k: v for k, v in data.items() if k != key}
        return {**data, key: change_json(draw, data[key])}
    if isinstance(data, list) and data and draw(st.integers(0, 4)):
        index = draw(st.integers(0, min(len(data), 50) - 1))
        return [*data[:index], change_json(draw, data[index]), *data[index + 1 :]]
    return draw(VALUES)


def mutate(draw: Callable[[Any], Any], place: Place) -> None:
    """One change of a stranger's."""
    # What an earlier change made a link or a FIFO is no file to change.
    cells, profiles, runs = (
        [p for p in sorted(place.results.glob(names)) if p.is_file() and not p.is_symlink()]
        for names in ("cells/*.json", "profiles/*/*.gz", "[pr]*[ns].json")
    )
    kind = draw(st.sampled_from(["json", "json", "json", "profile", "name", "replace", "bytes"]))
    if kind == "json" and runs + cells:
        path = draw(st.sampled_from(runs + cells))
        with contextlib.suppress(ValueError):  # an earlier change broke it
            path.write_text(json.dumps(change_json(draw, json.loads(path.read_text()))))
    elif kind == "profile" and profiles:
        path = draw(st.sampled_from(profiles))
        try:
            content = json.loads(gzip.decompress(path.read_bytes()))
            lines = str(content["output"]).splitlines()
        except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError):
            return
        if draw(st.booleans()) or not lines:
            content = change_json(draw, content)
        else:
            index = draw(st.integers(0, len(lines) - 1))
            try:
                lines[index] = json.dumps(change_json(draw, json.loads(lines[index])))
            except ValueError:
                lines[index] = draw(TEXTS)
            content["output"] = "\n".join(lines)
        path.write_bytes(gzip.compress(json.dumps(content).encode()))
    elif kind == "name":
        fields = ["workload", "filesystem", "medium", "side", "profile"]
        field, value = draw(st.sampled_from(fields)), draw(TEXTS)
        for path in cells:
            rename(place.results, path, **{field: value})
    elif kind == "bytes" and runs + cells + profiles:
        path = draw(st.sampled_from(runs + cells + profiles))
        content = path.read_bytes()
        start = draw(st.integers(0, len(content)))
        path.write_bytes(content[:start] + draw(st.binary(max_size=8)) + content[start + 4 :])
    else:
        name = draw(st.sampled_from(FILES))
        chosen = {"cell": cells, "profile": profiles}.get(name, [place.results / name])
        path = draw(st.sampled_from(chosen)) if chosen else place.results / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if not path.parent.is_dir():
            return
        what = draw(st.sampled_from(["file", "directory", "fifo", "loop", "empty", "folder"]))
        if what in ("file", "directory"):
            path.symlink_to(place.outside / what)
        elif what == "loop":
            path.symlink_to(path.name)
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "folder":
            path.mkdir()
        else:
            path.write_bytes(b"")


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="FSCALE_FUZZ" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_fuzz(data: st.DataObject, original: Path, tmp_path_factory: Factory) -> None:
    place = Place(tmp_path_factory.mktemp("fuzz"))
    try:
        shutil.copytree(original, place.results)
        for _ in range(data.draw(st.integers(1, 3))):
            if (place.results / "cells").is_dir() and not (place.results / "cells").is_symlink():
                mutate(data.draw, place)
        names = sorted(place.commands(original))
        place.try_commands(
            original, *data.draw(st.lists(st.sampled_from(names), min_size=2, max_size=3))
        )
    finally:
        shutil.rmtree(place.root)
