# SPDX-License-Identifier: GPL-2.0-only
"""Hands loads of a user's own to a guest, which has no other file of the host."""

from collections.abc import Sequence
from pathlib import Path

from fscale.model import loadfile
from fscale.model.catalogue import is_path, split_names
from fscale.model.errors import FscaleError

_OPTION = "--workload"


def files_for_guest(arguments: Sequence[str]) -> tuple[dict[str, Path], list[str]]:
    """The files of the loads that the options of `fscale run` name by path, and those options.

    Returns host files by their names in the guest's /control, and the options with the paths that
    the guest has.

    Raises:
        FscaleError: a load is not valid, or needs more than its TOML file and its job file.
    """
    files: dict[str, Path] = {}
    words: list[str] = []
    for word in arguments:
        if word.startswith(f"{_OPTION}="):
            words.append(f"{_OPTION}={_in_guest(word.partition('=')[2], files)}")
        elif words and words[-1] == _OPTION:
            words.append(_in_guest(word, files))
        else:
            words.append(word)
    return files, words


def _in_guest(text: str, files: dict[str, Path]) -> str:
    names = []
    for name in split_names(text):
        if not is_path(name):
            names.append(name)
            continue
        load = loadfile.read(name)
        if any("{here}" in argument for argv in load.file.argvs for argument in argv):
            raise FscaleError(
                f"{name}: a guest has the TOML file alone, so {{here}} names nothing there; write "
                "the program into the argv, such as sh -c"
            )
        files |= {f"loads/{own}": load.path.parent / own for own in load.texts}
        names.append(f"/control/loads/{load.path.name}")
    return ",".join(names)
