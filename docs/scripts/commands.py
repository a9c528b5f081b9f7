# SPDX-License-Identifier: GPL-2.0-only
"""Reference pages of the commands, from what typer knows of them."""

import re
from typing import Any

import typer
import typer.cli

from fscale.cli import command_tree

EXAMPLE = "Example: "
"""before the command that each help text begins with"""


def pages() -> dict[str, str]:
    """File name -> Markdown of each command's page, and of an index."""
    root = command_tree()
    context = typer.Context(root, info_name="fscale")
    made = {
        f"commands/{name}.md": _page(command, context, name)
        for name, command in sorted(root.commands.items())
        if not command.hidden
    }
    return made | {"commands/index.md": _index(root, context)}


def _index(root: Any, context: typer.Context) -> str:
    lines = ["# Commands", "", "Each command has `--help` with the same text.", ""]
    for name in root.list_commands(context):
        command = root.commands[name]
        if not command.hidden:
            said = command.get_short_help_str(limit=200)
            lines.append(f"- [fscale {name}]({name}.md): {said}")
    toctree = ["", "```{toctree}", ":hidden:", ":glob:", "", "*", "```"]
    return "\n".join([*lines, *toctree]) + "\n"


def _page(command: Any, context: typer.Context, name: str) -> str:
    _show_examples(command)
    text = typer.cli.get_docs_for_click(
        obj=command, ctx=context, call_prefix="fscale", name=name, title=f"fscale {name}"
    )
    # Headings of commands below one are plain too, and are links' targets.
    text = re.sub(r"^(#+) `(.*)`$", r"\1 \2", text, flags=re.MULTILINE)
    # Who reads the page measures elsewhere: where this copy lies says nothing.
    return re.sub(r"\[default: (/[^\]]*)\]", "", text)


def _show_examples(command: Any) -> None:
    """Commands that stand in help texts and epilogs become code, here and below."""
    for inner in getattr(command, "commands", {}).values():
        _show_examples(inner)
    command.help = _as_code(command.help)
    command.epilog = _as_code(command.epilog)


def _as_code(text: str | None) -> str | None:
    if not text:
        return text
    return "\n\n".join(map(_paragraph, text.split("\n\n")))


def _paragraph(text: str) -> str:
    if text.startswith(EXAMPLE):
        return f"{EXAMPLE.strip()}\n\n{_paragraph(text.removeprefix(EXAMPLE))}"
    if not text.startswith("fscale "):
        return text
    lines = [f"$ {line}" if line.startswith("fscale ") else line for line in text.splitlines()]
    return "\n".join(["```console", *lines, "```"])
