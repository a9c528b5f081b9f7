# SPDX-License-Identifier: GPL-2.0-only
"""The command line: finds the commands, and turns errors into messages and exit codes."""

import errno
import importlib
import os
import pkgutil
import signal
import sys
import traceback
from pathlib import Path

import typer

import fscale.commands
from fscale import __version__
from fscale.commands.options.helptext import Command, Group, group_options, laid_out
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import is_text
from fscale.model.terminal import say
from fscale.system import streams
from fscale.system.environment import undo_inherited

# The commands in the order in which a user needs them, by the headings of `fscale --help`.
_PANELS = {
    "Measure": ("doctor", "list", "run"),
    "Compare": ("compare", "ab", "gate", "bisect", "noise"),
    "Diagnose": ("locks",),
    "Report and export": ("report", "show", "export", "history", "import"),
    "Guests and simulator": ("vm", "simulate", "calibrate"),
    "Many machines": ("cell",),
    "Maintain": ("restore", "schema"),
}
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}
_EPILOG = """
Example:

    fscale run quick --fs ext4,xfs --output results/today
    fscale report results/today

`fscale COMMAND --help` describes a command and shows an example of it.
"""

app = typer.Typer(
    name="fscale",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Does this file system scale with cores, why does it stop, and did my patch change that?",
    epilog=laid_out(_EPILOG),
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fscale {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


def _modules() -> list[str]:
    """Return the requested command; all commands for the help and for importers of `app`.

    Importing all commands takes seconds, in an emulated guest half a minute.
    """
    found = {m.name for m in pkgutil.iter_modules(fscale.commands.__path__)} - {"options"}
    ordered = [name for names in _PANELS.values() for name in names if name in found]
    names = [*ordered, *sorted(found.difference(ordered))]
    program = Path(sys.argv[0])
    started = program.name == "fscale" or program == Path(__file__).with_name("__main__.py")
    words = sys.argv
    if "_FSCALE_COMPLETE" in os.environ:  # a shell asks for completions: bash, then others
        typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = typed.split()
    asked = words[1] if started and len(words) > 1 else ""
    return [asked] if asked in names else names


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


for _module in _modules():
    importlib.import_module(f"fscale.commands.{_module}").register(app)
for _command in app.registered_commands:
    _command.rich_help_panel = _PANEL_OF.get(_command.name or "")
for _group in app.registered_groups:
    _group.rich_help_panel = _PANEL_OF.get(_group.name or "")
_lay_out(app)


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
    except FscaleError as error:
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
