# SPDX-License-Identifier: GPL-2.0-only
"""Execute the guide's notebook and keep its outputs: `python -m docs.scripts.notebook`.

It needs what `pip install -e .[dev]` installs, and the compiled microbenchmark.
"""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from docs.scripts.unpack import unpack
from fscale.model.paths import ROOT

NOTEBOOK = ROOT / "docs/guide/notebook.ipynb"
DATA = {
    "sixteen-cores": "docs/results/data/sixteen-cores.json",
    "two-cores": "docs/results/data/quick-two-cores.json",
    "ab-data-journal": "tests/golden/comparisons/ab-whole.json.gz",
}
"""name in results/ -> data in this repository"""


def execute(directory: Path) -> nbformat.NotebookNode:
    """The notebook as executed in a directory, in which its data is unpacked.

    Raises:
        CellExecutionError: a cell of it fails.
    """
    for name, path in DATA.items():
        unpack(ROOT / path, directory / "results" / name)
    notebook = nbformat.reads(NOTEBOOK.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(directory)}},
    )
    return client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})


def main() -> None:
    """Write the outputs to the notebook."""
    with tempfile.TemporaryDirectory() as place:
        NOTEBOOK.write_text(nbformat.writes(execute(Path(place))) + "\n")  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
