# SPDX-License-Identifier: GPL-2.0-only
"""Dask as an engine: its scheduler hands tasks to workers, and runs those of a dead one again.

The number of submitted tasks is bounded, so that a plan may have more than a scheduler can hold.
"""

import contextlib
import hashlib
import ipaddress
import itertools
import logging
import queue
import time
from asyncio import CancelledError
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from fscale.farm.answer import MOST_TEXT, MOST_WHOLE, Answer, Header, Refused, check, unpack
from fscale.farm.engine import Say
from fscale.farm.objects import Objects
from fscale.farm.task import Task, identity
from fscale.model.errors import Exit, FscaleError

try:
    from distributed import Client, Future
    from distributed.security import Security

    from fscale.farm import worker
except ImportError:
    raise FscaleError(
        "Dask is not installed; install it beside fscale: `pip install 'fscale[dask]'`, or "
        "`pipx inject --include-apps fscale dask distributed`"
    ) from None

POLL_SECONDS = 1.0
CONNECT_SECONDS = 10.0
PATIENCE_SECONDS = 600.0
"""how long a cluster may have no scheduler or no worker"""
TASKS_PER_SLOT = 2
ATTEMPTS = 3
# Exit codes by which a machine says that it cannot run the task.
_UNFIT = (Exit.USAGE, Exit.SKIPPED)
Execute = Callable[[bytes], bytes]


class Dask:
    """See fscale.farm.engine.Engine."""

    def __init__(
        self, address: str, security: Security | None, say: Say, execute: Execute = worker.execute
    ) -> None:
        """`execute` runs on the workers.

        Raises:
            FscaleError: no scheduler answers.
        """
        self._address = address
        self._security = security
        self._say = say
        self._execute = execute
        self._resource = f"fscale-{hashlib.sha256(identity().encode()).hexdigest()[:16]}"
        self._workers: dict[str, int] = {}
        """threads of the workers that may be used, by address"""
        self._banned: dict[str, str] = {}
        """addresses that are not used -> why"""
        self._waiting: deque[Task] = deque()
        self._running: dict[str, tuple[Future, Task]] = {}
        """by the key of Dask"""
        self._attempts: Counter[str] = Counter()
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._objects = Objects()
        self._client = self._connected()
        self._await_worker()

    def __enter__(self) -> "Dask":
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.cancel([future for future, _ in self._running.values()], force=True)
        with contextlib.suppress(Exception):
            self._client.close(timeout=CONNECT_SECONDS)

    @property
    def slots(self) -> int:
        """See Engine."""
        return max(1, sum(self._workers.values()))

    def submit(self, tasks: Sequence[Task], objects: Objects) -> None:
        """See Engine."""
        self._waiting.extend(tasks)
        self._objects = objects
        self._workers = {}  # which may lack the input files

    def collect(self) -> Iterator[Answer]:
        """See Engine."""
        lonely = looked = time.monotonic() - POLL_SECONDS
        while self._waiting or self._running:
            now = time.monotonic()
            if now - looked >= POLL_SECONDS:
                if self._look():
                    lonely = now
                looked = now
            if now - lonely > PATIENCE_SECONDS:
                raise FscaleError(f"{self._address} has no worker that can be used{self._why()}")
            while self._waiting and self._room:
                self._start(self._waiting.popleft())
            yield from self._take(self._next())

    @property
    def _room(self) -> bool:
        usable = bool(self._workers) and self._client.status == "running"
        return usable and len(self._running) < TASKS_PER_SLOT * self.slots

    def _why(self) -> str:
        reasons = "; ".join(f"{where}: {why}" for where, why in self._banned.items())
        return f" ({reasons})" if reasons else ""

    def _connected(self) -> Client:
        try:
            return Client(
                self._address,
                security=self._security,
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                # A worker's answer is bytes; its pickled objects are refused.
                deserializers=["dask", "msgpack"],
            )
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: it has no TLS
            raise FscaleError(
                f"no Dask scheduler answers at {self._address}: {error or 'no answer in time'}; "
                "start one with `dask scheduler`, with certificates of the same authority"
            ) from None

    def _await_worker(self) -> None:
        """Wait a moment for a first worker, because a plan is cut by the number of slots."""
        ends = time.monotonic() + CONNECT_SECONDS
        while not self._look():
            if time.monotonic() > ends:
                self._say(f"note: {self._address} has no worker yet")
                return
            time.sleep(POLL_SECONDS)

    def _start(self, task: Task) -> None:
        future = self._client.submit(
            self._execute,
            task.model_dump_json().encode(),
            key=f"fscale-{task.id}-{next(self._numbers)}",
            resources={self._resource: 1},
            pure=False,
        )
        self._running[future.key] = future, task
        future.add_done_callback(self._ended.put)

    def _next(self) -> list[Future]:
        """Wait a moment for tasks to end, and return all that have."""
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._ended.get(timeout=POLL_SECONDS))
            while True:
                found.append(self._ended.get_nowait())
        return [future for future in found if future.key in self._running]  # else: given up

    def _take(self, ended: list[Future]) -> Iterator[Answer]:
        """Turn tasks that ended into answers, except those that are to be run again."""
        finished = [future.key for future in ended if future.status == "finished"]
        try:
            sizes = self._client.nbytes(finished, summary=False) if finished else {}
        except (OSError, TimeoutError):
            sizes = None  # the scheduler has died
        for future in ended:
            _, task = self._running.pop(future.key)
            try:
                if sizes is None:
                    raise CancelledError
                answer = check(task, *unpack(_fetch(future, sizes.get(future.key, 0))))
            except (CancelledError, TimeoutError, OSError):  # scheduler or worker has died
                self._waiting.append(task)
                continue
            except Refused as error:
                header = Header(task=task.id, host="", code=Exit.FAILED, text=str(error))
                answer = Answer(task, header, [], {})
            if answer.complete or not self._repeated(answer, future):
                yield answer
            future.release()

    def _repeated(self, answer: Answer, future: Future) -> bool:
        """Whether a task that did not do all is run again, possibly elsewhere."""
        task, header = answer.task, answer.header
        self._attempts[task.id] += 1
        unfit = future.status == "finished" and (header.code in _UNFIT or not header.host)
        where = self._holders(future) if unfit else ()
        for address in where:  # another machine may be able to
            self._ban(address, (header.text.splitlines() or ["no reason given"])[-1])
        if not where and (header.code == Exit.FAILED or self._attempts[task.id] >= ATTEMPTS):
            return False
        self._waiting.append(task)
        return True

    def _holders(self, future: Future) -> Sequence[str]:
        """The addresses of the workers that have a result."""
        with contextlib.suppress(OSError, TimeoutError):
            addresses: Sequence[str] = self._client.who_has([future]).get(future.key, ())
            return addresses
        return ()

    def _look(self) -> bool:
        """Find out which workers there are, and admit new ones; whether any may be used."""
        try:
            if self._client.status == "closed":
                self._client = self._connected()
                self._requeue()
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
        except (FscaleError, OSError, TimeoutError):
            return False
        self._workers = {
            address: about["nthreads"]
            for address, about in workers.items()
            if address in self._workers and about["resources"].get(self._resource)
        }
        if not self._workers:
            # Dask does not look at tasks again that had no worker when one is given a resource.
            self._requeue()
        self._admit({a: w for a, w in workers.items() if a not in self._workers})
        return bool(self._workers)

    def _requeue(self) -> None:
        """Take back all tasks."""
        taken, self._running = self._running, {}
        for future, task in taken.values():
            self._waiting.append(task)
            future.release()

    def _admit(self, found: dict[str, dict[str, Any]]) -> None:
        new = {a: about["nthreads"] for a, about in found.items() if a not in self._banned}
        for address in list(new):
            if self._security is None and not is_loopback(address):
                self._ban(address, "its connection is neither TLS nor loopback")
                del new[address]
        if not new:
            return
        said = self._run(worker.admit, identity(), self._resource, on=list(new))
        places: dict[tuple[str, str], str] = {}
        for address in list(new):
            about = said.get(address)
            if not isinstance(about, dict) or about.get("identity") != identity():
                told = about.get("identity") if isinstance(about, dict) else about
                self._ban(address, f"it has fscale {told}, but this is {identity()}")
                del new[address]
            else:
                places.setdefault((about["host"], about["cache"]), address)
        self._send(list(places.values()))
        self._workers |= {a: n for a, n in new.items() if a not in self._banned}

    def _send(self, to: list[str]) -> None:
        """Send the input files to the machines that lack them, one worker for each machine."""
        lacking = self._run(worker.missing, list(self._objects.paths), on=to)
        sender = f"{time.time_ns():x}"
        for digest in self._objects.paths:
            there = [one for one in to if digest in (lacking.get(one) or ())]
            for number, chunk in enumerate(self._objects.chunks(digest)):
                there = self._stored(there, worker.receive, digest, sender, number, chunk)
            self._stored(there, worker.finish, digest, sender)

    def _stored(self, to: list[str], function: Callable[..., Any], *args: Any) -> list[str]:
        """Call a function that returns why it failed; the workers on which it did not."""
        if not to:
            return []
        reasons = self._run(function, *args, on=to)
        for address in to:
            if reasons.get(address) != "":
                self._ban(address, f"it cannot store input files: {reasons.get(address)}")
        return [address for address in to if address not in self._banned]

    def _run(self, function: Callable[..., Any], *args: Any, on: list[str]) -> dict[str, Any]:
        """Call a function on workers; the results, or exceptions, by address."""
        try:
            results: dict[str, Any] = self._client.run(
                function, *args, workers=on, on_error="return"
            )
        except (OSError, TimeoutError, TypeError) as error:
            return dict.fromkeys(on, error)
        return results

    def _ban(self, address: str, why: str) -> None:
        """Use a worker no more."""
        self._banned[address] = why
        self._say(f"warning: {address} is not used: {why}")
        if self._workers.pop(address, None):
            self._run(worker.dismiss, self._resource, on=[address])


def _fetch(future: Future, size: int) -> bytes:
    """The result of a task, whose size the scheduler knows.

    Raises:
        Refused: there is none, it is too large, or it is not bytes.
        OSError, TimeoutError, CancelledError: it was lost.
    """
    if future.status in ("cancelled", "lost"):
        raise CancelledError
    if future.status == "error":
        error = future.exception(timeout=CONNECT_SECONDS)
        raise Refused(f"{type(error).__name__}: {error}"[:MOST_TEXT])
    if size > MOST_WHOLE:
        raise Refused(f"the answer has {size} bytes; at most {MOST_WHOLE} are accepted")
    try:
        content = future.result(timeout=CONNECT_SECONDS)
    except TypeError as error:  # it is a pickled object
        raise Refused(str(error)[:MOST_TEXT]) from None
    if not isinstance(content, bytes):
        raise Refused(f"the answer is {type(content).__name__}, not bytes")
    return content


def is_loopback(address: str) -> bool:
    """Return whether an address, such as tcp://127.0.0.1:8786, is of this machine alone."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_engine(on: str, say: Say) -> Dask:
    """Connect to the scheduler at dask://HOST:PORT.

    TLS is used if Dask is configured for it (distributed.comm.tls), and required unless the
    scheduler is on the loopback interface: whoever reaches a port of Dask can run code there.

    Raises:
        FscaleError: the address is not valid, TLS is required, or no scheduler answers.
    """
    parts = urlsplit(on)
    try:
        port = parts.port
    except ValueError:
        port = None
    if not parts.hostname or not port or parts.path or parts.username:
        raise FscaleError(f"--on {on}: give dask://HOST:PORT, such as dask://node1:8786")
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)  # we say it in our words
    security = Security(require_encryption=True)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if security.tls_ca_file and security.tls_client_cert:
        return Dask(f"tls://{host}:{port}", security, say)
    if parts.scheme == "tls" or not is_loopback(on):
        raise FscaleError(
            f"--on {on}: whoever reaches a scheduler of Dask can run code on its machines, so "
            "TLS is required beyond the loopback interface; set "
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, __CLIENT__CERT and __CLIENT__KEY "
            "(docs/guide/many-machines.md)"
        )
    return Dask(f"tcp://{host}:{port}", None, say)
