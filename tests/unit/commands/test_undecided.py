# SPDX-License-Identifier: GPL-2.0-only
"""--fail-undecided: what nothing could be said about does not pass, if the user asks for that."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from fscale.ab import plan, run
from fscale.cli import app
from fscale.commands import ab
from tests.support.synthetic import grid, write_run


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--fail-undecided"], 1)])
def test_of_ab(
    options: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "paired"

    def measured(*_: object) -> None:
        noisy = [
            cell.model_copy(update={"key": key, "id": key.id})
            for side in "AB"
            for cell in grid(
                [1], 12, ["MWCL"], ["ext4"], rate=lambda key: 1000 * 1.5 ** (key.repetition % 5)
            )
            for key in [cell.key.model_copy(update={"side": side})]
        ]
        write_run(output, noisy)
        (output / "ab.json").write_text('{"schema": 1, "base": "a", "new": "b", "looks": []}')

    monkeypatch.setattr(ab, "this_machine_held", nullcontext)
    monkeypatch.setattr(plan, "make", lambda *_, **__: SimpleNamespace(points=[]))
    monkeypatch.setattr(run, "execute", measured)
    words = ["ab", "--base", "ext4", "--new", "ext4:mount=commit=1", "--output", str(output)]
    done = CliRunner().invoke(app, [*words, *options])
    assert "could not judge" in done.output
    assert done.exit_code == code
