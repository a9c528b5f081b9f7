# SPDX-License-Identifier: GPL-2.0-only
"""The SMTP clients against servers of the test's own: what is no delivery is no result."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fscale.model import paths

SOURCES = paths.ROOT / "apps"
STAMP = "2026-01-31 12:00:00 "


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generator, built with sanitizers."""
    build = tmp_path_factory.mktemp("apps")
    wanted = build / "fscale-smtp-load"
    argv = ["make", "-s", "-C", str(SOURCES), f"OUT={build}", str(wanted)]
    subprocess.run([*argv, "SANITIZE=-fsanitize=address,undefined"], check=True)
    return wanted


class Server:
    """Speaks SMTP; `answer` gives the reply to a command, None closes the connection."""

    def __init__(self, log: Path, answer: Callable[[str], str | None], deliver: str) -> None:
        self.log, self.answer, self.deliver = log, answer, deliver
        self.messages = 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.lock = threading.Lock()
        log.write_text(STAMP + "exim 4.96 daemon started: pid=1, listening\n")
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with (
            contextlib.suppress(ConnectionError),
            connection,
            connection.makefile("rw", newline="\r\n") as file,
        ):
            file.write("220 test\r\n")
            file.flush()
            data = False
            for line in file:
                word = line.strip()
                if data and word != ".":
                    continue
                reply = self.answer("." if data else word)
                data = not data and word == "DATA" and reply is not None
                if reply is None:
                    return
                if word == ".":
                    self._delivered()
                file.write(reply + "\r\n")
                file.flush()
                if word == "QUIT":
                    return
            self._write("unexpected disconnection while reading SMTP command")

    def _write(self, words: str) -> None:
        with self.lock, self.log.open("a") as log:
            log.write(f"{STAMP}{words}\n")

    def _delivered(self) -> None:
        with self.lock, self.log.open("a") as log:
            self.messages += 1
            if self.deliver:
                log.write(f"{STAMP}id-{self.messages} <= a@b P=smtp S=1\n")
                log.write(f"{STAMP}id-{self.messages} {self.deliver}\n")


def polite(word: str) -> str | None:
    codes = {"DATA": "354 go on", "QUIT": "221 bye"}
    return codes.get(word, "250 ok")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers = []

    def start(answer: Callable[[str], str | None] = polite, deliver: str = "Completed") -> Server:
        servers.append(Server(tmp_path / f"log{len(servers)}", answer, deliver))
        return servers[-1]

    yield start
    for server in servers:
        server.socket.close()


def load(binary: Path, *servers: Server, drain: str = "0.5") -> tuple[int, dict[str, Any], str]:
    argv = [str(binary), "--clients", "4", "--processes", "2", "--per-connection", "3"]
    argv += ["--warmup", "0.1", "--duration", "0.5", "--drain", drain]
    for server in servers:
        argv += ["--port", str(server.port), "--log", str(server.log)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert "Sanitizer" not in done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stdout


def test_deliveries_are_counted(binary: Path, serve: Callable[..., Server]) -> None:
    servers = [serve(), serve()]
    code, said, out = load(binary, *servers)
    assert (code, said["error"]) == (0, None)
    assert out.splitlines()[:2] == ["start", "end"]
    in_all = servers[0].messages + servers[1].messages
    assert said["delivered_in_all"] == said["accepted_in_all"] == said["received_in_all"] == in_all
    assert 0 < said["delivered"] < in_all
    assert all(server.messages for server in servers)
    assert 0.5 <= said["seconds"] < 1
    assert 0 < said["generator_cpu_seconds"] < 1


def test_a_refused_recipient_is_an_error(binary: Path, serve: Callable[..., Server]) -> None:
    server = serve(lambda word: "550 no such user" if word.startswith("RCPT") else polite(word))
    code, said, _ = load(binary, server)
    assert code == 1
    assert said["error"].split("; ")[0].endswith("RCPT with: 550 no such user")


def test_the_cause_comes_before_the_connections_that_it_broke(
    binary: Path, serve: Callable[..., Server]
) -> None:
    server = serve(lambda word: "451 Error in writing spool file" if word == "." else polite(word))
    code, said, _ = load(binary, server)
    assert code == 1
    assert "the message with: 451 Error in writing spool file" in said["error"].split("; ")[0]


def test_acceptance_is_no_delivery(binary: Path, serve: Callable[..., Server]) -> None:
    """Messages that nobody delivers: the clients stop at the backlog, and there is no result."""
    server = serve(deliver="")
    code, said, _ = load(binary, server)
    assert code == 1
    assert re.search(r"accepted [1-9]\d* messages and delivered 0 ", said["error"])
    assert server.messages <= 8 + 4  # the backlog, and what four clients were sending


@pytest.mark.parametrize(
    "line",
    [
        "== u1@fscale.invalid R=local T=mailbox defer (28): No space left on device",
        "** u1@fscale.invalid: retry timeout exceeded",
    ],
)
def test_a_deferred_or_failed_delivery_is_an_error(
    binary: Path, serve: Callable[..., Server], line: str
) -> None:
    code, said, _ = load(binary, serve(deliver=line))
    assert code == 1
    assert line in said["error"]


def test_a_server_that_goes_away_is_an_error(binary: Path, serve: Callable[..., Server]) -> None:
    server = serve(lambda word: None if word == "." else polite(word))
    code, said, _ = load(binary, server)
    assert code == 1
    assert "closed the connection before its reply to the message" in said["error"]


def test_nobody_listens(binary: Path, serve: Callable[..., Server]) -> None:
    server = serve()
    server.socket.shutdown(socket.SHUT_RDWR)
    server.socket.close()
    code, said, _ = load(binary, server)
    assert code == 1
    assert f"connect to port {server.port}: Connection refused" in said["error"]


def test_a_server_that_never_answers_is_an_error(
    binary: Path, serve: Callable[..., Server]
) -> None:
    """No message is accepted, and none is delivered: nothing is wrong but the figure."""
    silent = threading.Event()
    server = serve(lambda word: polite(word) if silent.wait(20) else None)
    code, said, _ = load(binary, server)
    silent.set()
    assert code == 1
    assert said["delivered"] == 0
    assert "accepted 0 messages and delivered 0 " in said["error"]


def test_a_generator_that_dies_is_an_error(binary: Path, serve: Callable[..., Server]) -> None:
    server = serve()
    argv = [str(binary), "--clients", "2", "--processes", "2", "--duration", "20"]
    argv += ["--port", str(server.port), "--log", str(server.log)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + 10
        while server.messages < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(int(children.read_text().split()[1]), signal.SIGKILL)
        out, _ = process.communicate(timeout=10)
    assert process.returncode == 1
    assert "generator 1 was killed by signal 9" in json.loads(out.splitlines()[-1])["error"]


def test_wrong_usage(binary: Path) -> None:
    for argv in ([], ["--port", "1"], ["--clients", "x"], ["--port", "0", "--log", "/dev/null"]):
        done = subprocess.run([str(binary), *argv], capture_output=True, timeout=10, check=False)
        assert done.returncode == 2
