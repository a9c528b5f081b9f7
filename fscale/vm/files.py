# SPDX-License-Identifier: GPL-2.0-only
"""Files of the user that a guest gets, which has no other file of the host.

The functions return host files by their names below /control of the guest.
"""

from collections.abc import Iterable
from pathlib import Path

from fscale.model import loadfile
from fscale.model.catalogue import is_path, split_names
from fscale.model.errors import FscaleError

Files = dict[str, Path]


def pass_configuration(suite: Path, filesystems: Iterable[Path]) -> tuple[Files, str]:
    """Return the TOML files of a suite and of file systems, and the suite's name in the guest."""
    files = {f"filesystems/{path.name}": path for path in filesystems}
    if not suite.is_file():
        return files, str(suite)
    return {**files, "suite.toml": suite}, "/control/suite.toml"


def pass_loads(workloads: str) -> tuple[Files, str]:
    """Return the files of the loads in a list of workloads, and that list with the guest's paths.

    Raises:
        FscaleError: a load is not valid, or needs more than its TOML file and its job file.
    """
    files: Files = {}
    names = []
    for name in split_names(workloads):
        if not is_path(name):
            names.append(name)
            continue
        load = loadfile.read(name)
        if any("{here}" in argument for argv in load.file.argvs for argument in argv):
            raise FscaleError(
                f"{name}: a guest has the TOML file alone, so {{here}} names nothing there; write "
                "the program into the argv, such as sh -c"
            )
        files |= {f"loads/{text}": load.path.parent / text for text in load.texts}
        names.append(f"/control/loads/{load.path.name}")
    return files, ",".join(names)
