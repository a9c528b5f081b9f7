# SPDX-License-Identifier: GPL-2.0-only
"""What a CI that submits results to KernelCI knows about them."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fscale.commands.options.helptext import OUTPUT
from fscale.model.errors import FscaleError

if TYPE_CHECKING:
    from fscale.analysis.formats.submission import Submission


def _known(metavar: str, help_text: str) -> Any:
    return typer.Option(metavar=metavar, help=f"KCIDB: {help_text}", rich_help_panel=OUTPUT)


@dataclass(frozen=True)
class SubmissionOptions:
    """The submitter, and the checkout and build that the results belong to."""

    origin: Annotated[
        str | None,
        _known("NAME", "submitter of the results, as KernelCI assigned it. Default: fscale."),
    ] = None
    build_id: Annotated[
        str | None,
        _known("ID", "kernel build that the results belong to, which is submitted elsewhere."),
    ] = None
    checkout_id: Annotated[
        str | None,
        _known("ID", "checkout that the kernel was built from, which is submitted elsewhere."),
    ] = None
    commit: Annotated[
        str | None,
        _known("HASH", "commit that the kernel was built from, if its checkout is not submitted."),
    ] = None
    platform: Annotated[
        str | None,
        _known("NAME", "name of the machine in the CI. Default: its host name."),
    ] = None

    @property
    def submission(self) -> "Submission":
        """What was stated.

        Raises:
            FscaleError: a name is not one of KernelCI.
        """
        from fscale.analysis.formats.submission import Submission  # noqa: PLC0415 - imports the statistics

        return Submission(**self.given)

    def refuse_unwritten(self, written: bool) -> None:
        """Refuse the description of a submission that is not written.

        Raises:
            FscaleError: one of the options was given.
        """
        if self.given and not written:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in self.given)
            raise FscaleError(f"{options}: describes a submission to KernelCI; add --kcidb")

    @property
    def given(self) -> dict[str, str]:
        """The options that were given, by their names."""
        names = {field.name for field in fields(SubmissionOptions)}
        return {k: v for k, v in asdict(self).items() if k in names and v is not None}
