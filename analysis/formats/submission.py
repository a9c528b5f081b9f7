# SPDX-License-Identifier: GPL-2.0-only
"""What a submission to KernelCI's database has besides its tests: origin, checkout and build.

The build and the checkout are described by the kernel's release, because the machine does not know
its source, unless the caller knows them: results then belong to the build or checkout that a CI
submits itself.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fscale.analysis.cells import one_line
from fscale.model.errors import FscaleError
from fscale.model.files import printable

_NAME = "[a-z0-9_]+"
_VERSION = {"major": 5, "minor": 0}


@dataclass(frozen=True)
class Submission:
    """What a CI that submits results knows about them, and the results do not."""

    origin: str = "fscale"
    """the submitter's name, which KernelCI assigns"""
    checkout_id: str | None = None
    """the checkout of the kernel, which is submitted elsewhere"""
    build_id: str | None = None
    """the build of the kernel, which is submitted elsewhere, with its checkout"""
    commit: str | None = None
    """the full hash of the commit in the checkout, if that is not submitted elsewhere"""
    platform: str | None = None
    """the name of the machine in the CI; None: its host name"""

    def __post_init__(self) -> None:
        """Check the names.

        Raises:
            FscaleError: KernelCI's schema does not allow one, or two contradict each other.
        """
        if not re.fullmatch(_NAME, self.origin):
            raise FscaleError(
                f"--origin {printable(self.origin)} is not an origin of KernelCI; give lower-case "
                "letters, digits and underscores"
            )
        for option, text in (("checkout", self.checkout_id), ("build", self.build_id)):
            if text is not None and not re.fullmatch(f"{_NAME}:.+", text):
                raise FscaleError(
                    f"--{option}-id {printable(text)} is not an id of KernelCI; give ORIGIN:NAME, "
                    f"as the {option} was submitted"
                )
        if self.commit is None:
            return
        if not re.fullmatch("[0-9a-f]{40}", self.commit):
            raise FscaleError(
                f"--commit {printable(self.commit)} is not the full hash of a commit; give what "
                "`git rev-parse HEAD` prints"
            )
        if self.checkout_id or self.build_id:
            raise FscaleError(
                "--commit is for a checkout that nobody else submits; leave it out with "
                "--checkout-id or --build-id"
            )

    def id(self, text: str) -> str:
        """An id of this submitter."""
        return f"{self.origin}:{text}"

    def build_of(self, kernel: str) -> str:
        """The id of the build of a kernel, which describes itself."""
        return self.build_id or self.id(" ".join(filter(None, [self.commit, kernel])))

    def document(
        self, kernel: str, architecture: str, tests: Iterable[dict[str, Any]], **build: Any
    ) -> str:
        """The JSON of tests of one kernel, with the checkout and the build unless they are known.

        `kernel` is empty if it was not built. `build`: further fields of the build.
        """
        data: dict[str, Any] = {"version": _VERSION}
        checkout_id = self.checkout_id or self.id(self.commit or kernel)
        if not (self.checkout_id or self.build_id):
            data["checkouts"] = [self._checkout(checkout_id, kernel)]
        if not self.build_id:
            described = {
                "id": self.build_of(kernel),
                "checkout_id": checkout_id,
                "origin": self.origin,
                "comment": kernel,
                **build,
            }
            if re.fullmatch(_NAME, architecture):
                described["architecture"] = architecture
            data["builds"] = [described]
        data["tests"] = list(tests)
        return json.dumps(data, indent=1) + "\n"

    def _checkout(self, id_: str, kernel: str) -> dict[str, Any]:
        checkout = {"id": id_, "origin": self.origin}
        if self.commit:
            return checkout | {"git_commit_hash": self.commit}
        comment = f"Linux {kernel}, as the running kernel names itself; its source is not recorded"
        return checkout | {"comment": comment}


def describe_kernel(release: str, build: str | None, architecture: str) -> str:
    """A kernel as it names itself."""
    return one_line(" ".join(filter(None, [release, build, architecture])))


def make_run_id(name: str, *identity: str) -> str:
    """A part of ids that no other run has: its name, and a digest of what identifies it."""
    digest = hashlib.sha256(" ".join(identity).encode()).hexdigest()[:12]
    return f"{printable(name)}:{digest}"


def make_path(*parts: str) -> str:
    """The path of a test, of which each part may be any text."""
    return ".".join(re.sub("[^a-zA-Z0-9_-]", "_", part) for part in ("fscale", *parts))
