# SPDX-License-Identifier: GPL-2.0-only
"""Hold pages, help texts and messages to the rules of writing: `python -m docs.scripts.check`.

It looks for shorthand (words.toml), sentences without a subject, long lines and pages, links that
lead nowhere, and terms that the glossary lacks. Exit code 1 when there is something to mend.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

from docs.scripts import reference
from fscale.analysis.compare.model import Verdict
from fscale.model.paths import ROOT

WIDTH = 100
MAX_LINES = {"docs/guide": 150, "README.md": 100, "CONTRIBUTING.md": 150}
MAX_LINES_ELSEWHERE = 300
MAX_LINES_OF_TERM = 3
GENERATED = ("docs/reference/commands/", "docs/reference/workloads.md", "docs/results/")
GENERATED_KEYS = re.compile(r"docs/reference/[a-z-]+-(?:keys|fields|columns)\.md")
ROOMS = ("fscale", "analysis", "apps", "microbench")
ERRORS = ("FscaleError", "ValueError")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
# A question begins so, and a sentence should not.
SUBJECTLESS = re.compile(
    r"(?:What(?!-if)|Who|Whose|Of)\b(?! (?:course|these|those|the|all|each|\d)\b)[^?]*$"
)
SENTENCE = re.compile(r"(?<=[.!?:]) +(?=[A-Z])")


class Fault(NamedTuple):
    """Where something is to be mended, and what."""

    where: str
    what: str


def built() -> dict[Path, str]:
    """The pages that are written when the site is built."""
    return {ROOT / "docs/reference" / name: text for name, text in reference.built().items()}


def pages() -> dict[Path, str]:
    """README, CONTRIBUTING and all pages of docs/."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path: path.read_text() for path in files} | built()


def faults() -> Iterator[Fault]:
    """Everything that is to be mended, page by page."""
    texts = pages()
    anchors = {path: _anchors(text) for path, text in texts.items()}
    for path, text in texts.items():
        name = str(path.relative_to(ROOT))
        if not _generated(name):
            yield from _lengths(name, text)
        yield from _links(path, name, text, anchors)
        for number, paragraph in _prose(text):
            for what in wording(paragraph):
                yield Fault(f"{name}:{number}", what)
    yield from _glossary(texts)
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield from _messages(path)


def wording(text: str) -> list[str]:
    """What is wrong with the words of a paragraph or message."""
    found = [
        f'"{match[0]}": write "{better}"'
        for pattern, better in _SHORTHAND
        if (match := pattern.search(text))
    ]
    plain = re.sub(r"`[^`]*`|\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found += [
        f'"{sentence[:50]}...": a sentence begins with its subject'
        for sentence in SENTENCE.split(plain)
        if SUBJECTLESS.match(sentence)
    ]
    return found


def _shorthand() -> list[tuple[re.Pattern[str], str]]:
    listed = tomllib.loads(Path(__file__).with_name("words.toml").read_text())
    return [(re.compile(pattern, re.IGNORECASE), better) for pattern, better in listed.items()]


_SHORTHAND = _shorthand()


def _generated(name: str) -> bool:
    return name.startswith(GENERATED) or bool(GENERATED_KEYS.fullmatch(name))


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each paragraph, list item and heading; no code, no tables."""
    number, code, part = 0, False, ""
    for at, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        skipped = code or fence or line.startswith(("|", "    ")) or not line.strip()
        if part and (skipped or re.match(r"\s*(?:[-*#>:]|\d+\.) ", line)):
            yield number, part
            part = ""
        if not skipped:
            bare = re.sub(r"^\s*(?:[-*>:]|#+|\d+\.) ", "", line.strip())
            # A heading may name a topic: "What a guest can reach".
            bare = f"`{bare}`" if line.startswith("#") else bare
            number, part = (number, f"{part} {bare}") if part else (at, bare)


def _lengths(name: str, text: str) -> Iterator[Fault]:
    lines = text.splitlines()
    most = next((n for start, n in MAX_LINES.items() if name.startswith(start)), None)
    most = most or MAX_LINES_ELSEWHERE
    if len(lines) > most and name != "docs/glossary.md":
        yield Fault(name, f"has {len(lines)} lines; split it, or shorten it to {most}")
    for number, line in enumerate(lines, 1):
        if len(line) > WIDTH and not line.startswith(("|", "```")) and " " in line.strip():
            yield Fault(f"{name}:{number}", f"has {len(line)} columns; wrap it at {WIDTH}")


def _slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _without_boxes(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _without_boxes(text), re.MULTILINE)
    return {_slug(heading) for heading in headings}


def _links(path: Path, name: str, text: str, anchors: dict[Path, set[str]]) -> Iterator[Fault]:
    for match in LINK.finditer(re.sub(r"`[^`\n]*`", "", _without_boxes(text))):
        target = match[1] or match[2]
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if there in built() and path not in built():
            yield Fault(name, f"the link {target} leads to a page that the repository lacks")
        elif there not in anchors and not there.exists():
            yield Fault(name, f"the link {target} leads nowhere")
        elif anchor and there in anchors and anchor not in anchors[there]:
            yield Fault(name, f"the link {target} leads to no heading")


def _glossary(texts: dict[Path, str]) -> Iterator[Fault]:
    name = "docs/glossary.md"
    text = texts[ROOT / name]
    entries = re.findall(r"^## ([^\n]*)\n\n(.*?)(?=\n\n## |\Z)", text, re.MULTILINE | re.DOTALL)
    terms = [term for term, _ in entries]
    if terms != sorted(terms, key=str.lower):
        yield Fault(name, "its terms are not in the order of the alphabet")
    for term, body in entries:
        if len(body.strip().splitlines()) > MAX_LINES_OF_TERM:
            yield Fault(name, f"{term}: has more than {MAX_LINES_OF_TERM} lines")
    linked = {
        target for page in texts.values() for target in re.findall(r"glossary\.md#([\w-]+)", page)
    }
    for term in terms:
        if _slug(term) not in linked:
            yield Fault(name, f"{term}: no page links to it")
    for verdict in get_args(Verdict):
        if verdict not in terms and f"*{verdict}*" not in text:
            yield Fault(name, f"{verdict}: is a verdict and no term")


def _messages(path: Path) -> Iterator[Fault]:
    """The wording of errors: string literals in calls that make one."""
    name = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS:
            text = "".join(
                part.value
                for part in ast.walk(node)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )
            for what in wording(text):
                yield Fault(f"{name}:{node.lineno}", what)


def main() -> int:
    """Print what is to be mended."""
    found = list(faults())
    for fault in found:
        print(f"{fault.where}: {fault.what}")
    if found:
        print(f"{len(found)} to be mended; docs/scripts/words.toml has the words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
