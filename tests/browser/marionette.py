# SPDX-License-Identifier: GPL-2.0-only
"""Selenium's commands to Firefox itself, by the protocol that is built into it.

geckodriver, which else stands between them, is in no package of Debian 12. It translates commands
of WebDriver (https://www.w3.org/TR/webdriver2/) into those of Marionette, with the same content:
https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

import json
import socket
from itertools import count
from typing import Any

from selenium.webdriver.remote.command import Command

NAMES = {
    Command.NEW_SESSION: "WebDriver:NewSession",
    Command.QUIT: "Marionette:Quit",
    Command.GET: "WebDriver:Navigate",
    Command.FIND_ELEMENT: "WebDriver:FindElement",
    Command.FIND_ELEMENTS: "WebDriver:FindElements",
    Command.FIND_CHILD_ELEMENT: "WebDriver:FindElement",
    Command.FIND_CHILD_ELEMENTS: "WebDriver:FindElements",
    Command.CLICK_ELEMENT: "WebDriver:ElementClick",
    Command.SEND_KEYS_TO_ELEMENT: "WebDriver:ElementSendKeys",
    Command.GET_ELEMENT_TEXT: "WebDriver:GetElementText",
    Command.GET_ELEMENT_RECT: "WebDriver:GetElementRect",
    Command.IS_ELEMENT_SELECTED: "WebDriver:IsElementSelected",
    Command.W3C_EXECUTE_SCRIPT: "WebDriver:ExecuteScript",
    Command.W3C_EXECUTE_SCRIPT_ASYNC: "WebDriver:ExecuteAsyncScript",
    Command.W3C_ACTIONS: "WebDriver:PerformActions",
    Command.SCREENSHOT: "WebDriver:TakeScreenshot",
}
SECONDS = 120


class Marionette:
    """What Selenium calls a command executor: a connection to a Firefox that listens on `port`."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._stream = self._socket.makefile("rb")
        self._numbers = count()
        self._receive()  # its greeting

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        """Of a command of Selenium's, its answer as from a driver."""
        sent = dict(params)
        sent.pop("sessionId", None)
        if command == Command.NEW_SESSION:
            sent = sent["capabilities"]["alwaysMatch"]
        if command in (Command.FIND_CHILD_ELEMENT, Command.FIND_CHILD_ELEMENTS):
            sent["element"] = sent.pop("id")
        error, value = self.send(NAMES[command], sent)
        if error:
            return {"status": error["error"], "value": error}
        if command != Command.NEW_SESSION and isinstance(value, dict) and value.keys() == {"value"}:
            value = value["value"]
        return {"value": value}

    def send(self, name: str, parameters: dict[str, Any]) -> tuple[Any, Any]:
        """A command of Marionette: (error, result), one of them None."""
        message = json.dumps([0, next(self._numbers), name, parameters]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, _, error, result = self._receive()
        return error, result

    def close(self) -> None:
        """Selenium calls it after the last command."""
        self._stream.close()
        self._socket.close()

    def _receive(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            if not digit:
                raise ConnectionError("Firefox ended")
            length += digit
        return json.loads(self._stream.read(int(length)))
