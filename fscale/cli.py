# SPDX-License-Identifier: GPL-2.0-only
"""The command line: finds the commands, and turns errors into messages and exit codes."""

import errno
import importlib
import signal
import sys
import traceback
from typing import Any

import typer

from fscale import __version__
from fscale.commands.options.helptext import Command, Group, group_options, laid_out
from fscale.model.errors import Exit, FscaleError, Interrupted
from fscale.model.files import is_text
from fscale.model.terminal import say
from fscale.system import streams
from fscale.system.environment import undo_inherited

# The commands by the headings of `fscale --help`, in the order in which a user needs them. Each has
# the first sentence of its own help: importing all commands takes a second, in an emulated guest
# half a minute.
OVERVIEW = {
    "Measure": {
        "doctor": "Show what a machine can and cannot measure, and what to install or change.",
        "list": "List workloads, file systems, media or suites, and what this machine lacks for "
        "each.",
        "run": "Measure a suite on this machine: throughput of each point at each core count.",
        "reproduce": "Measure what a paper claims, as far as this machine allows, and judge each "
        "claim.",
    },
    "Compare": {
        "compare": "Judge for each point and curve whether NEW is slower, faster, the same or "
        "undecided.",
        "ab": "Measure two variants of a file system in alternation and judge the difference.",
        "gate": "Simulate two sides and compare instructions and shared cache lines per operation.",
        "bisect": "Build the commit that is checked out and judge it: one step of `git bisect "
        "run`.",
        "noise": "Measure a file system against itself: how small a change can this machine "
        "detect?",
    },
    "Diagnose": {
        "locks": "Show why cells stop scaling: the contended objects, ordered by the time lost to "
        "them.",
    },
    "Report and export": {
        "report": "Write the report of a run: report.html, and its plots as PDF and SVG files.",
        "show": "Draw the curves of a run in the terminal, and show which of its points scale.",
        "export": "Write all repetitions of a run, or another table of runs, in the format of "
        "another program.",
        "history": "Index and tag runs; show trends and the runs that changed them.",
        "import": "Convert results of another program into a run.",
    },
    "Guests and simulator": {
        "vm": "Run a suite in a QEMU guest: another kernel, a module under test, more CPUs.",
        "simulate": "Simulate a stock kernel on many cores: curves, counts per operation, hot "
        "cache lines.",
        "predict": "Predict throughput at more cores than were measured, from a run and a "
        "simulation.",
        "commute": "Find calls that commute but conflict: which pairs share a cache line, and "
        "which object it is.",
        "calibrate": "Measure cache-line transfers, atomics and memory; write a machine for "
        "`fscale simulate`.",
    },
    "Many machines": {
        "cell": "Measure the cells of a task that `--on` handed to this machine.",
    },
    "Maintain": {
        "restore": "Restore a machine after a killed run: offline CPUs, mounts, loop devices, "
        "processes.",
        "schema": "Print the JSON Schema of run.json, of a cell's file, or of a comparison.",
    },
}
_EPILOG = """
Example:

    fscale run quick --fs ext4,xfs --output results/today
    fscale report results/today

`fscale COMMAND --help` describes a command and shows an example of it.
"""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fscale {__version__}")
        raise typer.Exit


def _lay_out(of: typer.Typer) -> None:
    """Group the options of all commands, and make the texts wrap at the terminal's width."""
    for command in of.registered_commands:
        command.cls = Command
        if command.callback:
            group_options(command.callback)
        command.help = laid_out(command.help or getattr(command.callback, "__doc__", None) or "")
        command.epilog = laid_out(command.epilog) if command.epilog else None
    for group in of.registered_groups:
        group.cls = Group
        group.epilog = laid_out(group.epilog) if isinstance(group.epilog, str) else group.epilog
        if group.typer_instance:
            _lay_out(group.typer_instance)


def load(name: str) -> Any:
    """Import a command of the overview."""
    alone = typer.Typer()
    importlib.import_module(f"fscale.commands.{name}").register(alone)
    _lay_out(alone)
    return typer.main.get_group(alone).commands[name]


def command_tree() -> Any:
    """The command line with all of its commands imported, to read their options."""
    tree: Any = typer.main.get_command(app)
    tree.commands = {name: load(name) for name in tree.commands}
    return tree


class _Overview(Group):
    """All commands by name and summary; a command is imported when a command line names it."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for panel, commands in OVERVIEW.items():
            for name, summary in commands.items():
                self.add_command(Command(name, help=summary, rich_help_panel=panel))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command that a command line begins with."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name else command, rest


app = typer.Typer(
    name="fscale",
    cls=_Overview,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Does this file system scale with cores, why does it stop, and did my patch change that?",
    epilog=laid_out(_EPILOG),
)


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


GIT_STOPS = 128
_NO_VERDICT = (Exit.USAGE, Exit.INTERRUPTED)
_SIGINT = 128 + signal.SIGINT  # typer's code for it
_ANY_ADVICE = "check that it exists and that you have access"
_ADVICE = {
    errno.ENOSPC: "free some space, or give another path",
    errno.EDQUOT: "free some space, or give another path",
    errno.EROFS: "give a path on a writable file system",
    errno.EMFILE: "raise `ulimit -n`",
    errno.EAGAIN: "raise `ulimit -u`, or pids.max of this cgroup",
    errno.ENOMEM: "free some memory",
}


def main() -> None:
    """Run the command line and exit with one of the codes of `fscale.model.errors.Exit`.

    An error of the environment (a full disk, a directory without access) is reported as wrong
    usage; a bug of fscale is raised. SIGTERM and SIGHUP end every command as Ctrl-C does: its
    guests and children are stopped, and what it finished is kept.
    """
    streams.take_over()
    undo_inherited()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(number, signal.default_int_handler)
    try:
        code = _ended(sys.argv[1:])
        sys.stdout.flush()
    except (FscaleError, Interrupted) as error:
        code = _refused(str(error), error.code)
    except OSError as error:
        code = _refused(_explained(error), Exit.USAGE)
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    sys.stderr.flush()
    # git bisect takes a code below 128 for a verdict about the commit, which wrong usage is not.
    sys.exit(GIT_STOPS if sys.argv[1:2] == ["bisect"] and code in _NO_VERDICT else code)


def _ended(words: list[str]) -> int:
    """Run a command line and return its exit code."""
    for word in words:
        if not is_text(word):
            raise FscaleError(
                f"{word}: this argument is not valid UTF-8, which results need; give another name"
            )
    try:
        app(words, prog_name="fscale")
    except SystemExit as end:
        if end.code == _SIGINT:
            return Exit.INTERRUPTED
        return end.code if isinstance(end.code, int) else Exit.GOOD
    return Exit.GOOD


def _refused(text: str, code: int) -> int:
    say(f"fscale: {text}", error=True)
    return code


def _explained(error: OSError) -> str:
    """Describe an error that no command has explained, by its file or else its line of code."""
    where = error.filename
    if where is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
    name = where.decode(errors="replace") if isinstance(where, bytes) else where
    return f"{name}: {error.strerror or error}; {_ADVICE.get(error.errno or 0, _ANY_ADVICE)}"
