# SPDX-License-Identifier: GPL-2.0-only
"""A laboratory of labgrid on loopback, one place of which is the test machine.

Needs labgrid's coordinator, exporter and client (pip install labgrid) and microcom in PATH.
"""

import contextlib
import shutil
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.ssh.box import Box

_EXPORTED = """
box:
  NetworkService: {{address: testbox, username: root}}
  NetworkPowerPort: {{model: simplerest, host: 'http://127.0.0.1:{power}/{{value}}', index: 0}}
  NetworkSerialPort: {{host: 127.0.0.1, port: {serial}, protocol: raw}}
"""
_PORT = 22799


def missing() -> list[str]:
    """The programs that it needs and this machine lacks."""
    programs = ("labgrid-coordinator", "labgrid-exporter", "labgrid-client", "microcom")
    return [program for program in programs if shutil.which(program) is None]


@contextlib.contextmanager
def laboratory(box: Box) -> Iterator[str]:
    """Run it; the machine as `--on` names it."""
    assert not missing(), missing()
    console = box.place / "console"

    class Power(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/1":
                subprocess.run(["sh", "-c", box.reset], check=True)
            self.send_response(200)
            self.end_headers()

    class Serial(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with console.open("rb") as file, contextlib.suppress(OSError):
                file.seek(0, 2)
                while True:
                    self.request.sendall(file.read())
                    time.sleep(0.5)

    coordinator = f"127.0.0.1:{_PORT}"
    box.environment["LG_COORDINATOR"] = coordinator
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Power) as power,
        socketserver.ThreadingTCPServer(("127.0.0.1", 0), Serial) as serial,
    ):
        power.daemon_threads = serial.daemon_threads = True
        for server in (power, serial):
            threading.Thread(target=server.serve_forever, daemon=True).start()
        exported = Path(box.place / "exported.yaml")
        ports = {"power": power.server_address[1], "serial": serial.server_address[1]}
        exported.write_text(_EXPORTED.format(**ports))
        exporter = ["-c", coordinator, "-n", "lab", "--hostname", "localhost", str(exported)]
        with (
            _running("labgrid-coordinator", "-l", coordinator),
            _running("labgrid-exporter", *exporter),
        ):
            for words in (["create"], ["add-match", "lab/box/*"]):
                client = ["labgrid-client", "-p", "box", *words]
                subprocess.run(client, env=box.environment, check=True)
            yield "labgrid:box"


@contextlib.contextmanager
def _running(*argv: str) -> Iterator[None]:
    with subprocess.Popen(argv) as process:
        time.sleep(5)  # neither says when it is ready
        assert process.poll() is None, argv
        try:
            yield
        finally:
            process.terminate()
