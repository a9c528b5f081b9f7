# SPDX-License-Identifier: GPL-2.0-only
"""The command line: finds the commands and turns errors into sentences and exit codes."""

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
from fscale.model.errors import Exit, FscaleError
from fscale.model.files import is_text
from fscale.model.terminal import say
from fscale.system import streams

app = typer.Typer(
    name="fscale",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Does this file system scale with cores, why does it stop, and did my patch change that?",
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
    """The command that was asked for; all of them for the help and for who imports `app`.

    The imports of all commands together take seconds, in an emulated guest half a minute.
    """
    names = sorted(m.name for m in pkgutil.iter_modules(fscale.commands.__path__) if not m.ispkg)
    started = Path(sys.argv[0]) == Path(__file__).with_name("__main__.py")
    words = sys.argv
    if "_FSCALE_COMPLETE" in os.environ:  # a shell asks, with the words so far: bash, then others
        typed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
        words = typed.split()
    asked = words[1] if started and len(words) > 1 else ""
    return [asked] if asked in names else names


for _module in _modules():
    importlib.import_module(f"fscale.commands.{_module}").register(app)


# What scripts of before give, and what it is called now.
_OLDER_WORDS = {
    "--bench": "--workload",
    "--repeat": "--repetitions",
    "--rounds": "--repetitions",
    "--options": "--option",
    "benches": "workloads",
}


GIT_STOPS = 128
_NO_VERDICT = (Exit.USAGE, Exit.INTERRUPTED)
_SIGINT = 128 + signal.SIGINT  # typer's code for it
_ANY_ADVICE = "see that it is there and that you may use it"
_ADVICE = {
    errno.ENOSPC: "make room, or name another place",
    errno.EDQUOT: "make room, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.EMFILE: "raise `ulimit -n`",
    errno.ENOMEM: "free some memory",
}


def _renewed(words: list[str]) -> list[str]:
    """The words of a command line with those that have another name now; says which.

    What follows `--` is a command of somebody else's.
    """
    own = words.index("--") if "--" in words else len(words)
    renewed = []
    for word in words[:own]:
        name, equals, value = word.partition("=")
        now = _OLDER_WORDS.get(name, name)
        if now != name:
            typer.echo(f"fscale: {name} is called {now} now", err=True)
        renewed.append(f"{now}{equals}{value}")
    return renewed + words[own:]


def main() -> None:
    """Run the command line and exit with one of the codes of `fscale.model.errors.Exit`.

    What the world refuses (a full disk, a directory of somebody else's) is wrong use; an error of
    ours is a traceback.
    """
    streams.take_over()
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
    # For git bisect a code below 128 is a verdict about the commit, which wrong use is not.
    sys.exit(GIT_STOPS if sys.argv[1:2] == ["bisect"] and code in _NO_VERDICT else code)


def _ended(words: list[str]) -> int:
    """Run a command line; the code with which it ended."""
    for word in words:
        if not is_text(word):
            raise FscaleError(f"{word}: it is not UTF-8, and results are; give it another name")
    try:
        app(_renewed(words), prog_name="fscale")
    except SystemExit as end:
        if end.code == _SIGINT:
            return Exit.INTERRUPTED
        return end.code if isinstance(end.code, int) else Exit.GOOD
    return Exit.GOOD


def _refused(text: str, code: int) -> int:
    say(f"fscale: {text}", error=True)
    return code


def _explained(error: OSError) -> str:
    """A sentence about an error that no command has explained; where it came from, if it has no
    name of a file.
    """
    where = error.filename
    if where is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename}:{frame.lineno}"
    name = where.decode(errors="replace") if isinstance(where, bytes) else where
    return f"{name}: {error.strerror or error}; {_ADVICE.get(error.errno or 0, _ANY_ADVICE)}"
