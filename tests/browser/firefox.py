# SPDX-License-Identifier: GPL-2.0-only
"""Firefox, with no driver between it and Selenium."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from selenium import webdriver

from tests.browser.marionette import Marionette

BROWSER = Path("/usr/bin/firefox-esr")
# Any free port; what pages say goes to its output; it asks its maker's servers for nothing.
PREFERENCES = """\
user_pref("marionette.port", 0);
user_pref("devtools.console.stdout.content", true);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
"""
START = 60  # seconds

# Of what else speaks to the output: the browser's own search for experiments, in any version.
OWN = "console.error: RSLoader:"
# The scheme is the browser's, as a page's own is lost when another process takes the next page.
EMULATE = """
const [dark, medium] = arguments;
Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", dark ? 0 : 1);
gBrowser.selectedBrowser.browsingContext.mediumOverride = medium;
"""
# A window has a least width, the page in it has none.
RESIZE = """
const [width, height] = arguments, page = gBrowser.selectedBrowser;
window.resizeTo(Math.max(width, 600) + 50, height + 200);
for (const [name, value] of Object.entries({width, height}))
    for (const bound of ["", "min-", "max-"])
        page.style.setProperty(bound + name, `${value}px`);
"""
SIZE = "return [innerWidth, innerHeight]"
SCRIPTS = "gBrowser.selectedBrowser.browsingContext.allowJavascript = arguments[0]"
# Of pages, not of the browser's own windows.
MESSAGES = """
const own = /^(chrome|resource|moz-extension):/;
const found = Services.console.getMessageArray().filter(
    m => m instanceof Ci.nsIScriptError && !own.test(m.sourceName));
Services.console.reset();
return found.map(m => `${m.sourceName}: ${m.errorMessage}`);
"""
PROCESSES = """
return ChromeUtils.requestProcInfo().then(({children}) => children.map(child => child.pid));
"""
PROCESS = "return gBrowser.selectedBrowser.browsingContext.currentWindowGlobal.osPid"


class Firefox(webdriver.Remote):
    """Without a screen; its files go to `profile`."""

    needs = (BROWSER,)
    packages = ("firefox-esr",)

    def __init__(self, profile: Path) -> None:
        (profile / "user.js").write_text(PREFERENCES)
        argv = [str(BROWSER), "--headless", "--no-remote", "--profile", str(profile)]
        argv += ["--marionette", "--remote-allow-system-access"]
        self._output = profile / "output"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(argv, stdout=output, stderr=output)
        try:
            self._marionette = Marionette(self._port(profile / "MarionetteActivePort"))
            super().__init__(self._marionette, options=webdriver.FirefoxOptions())  # type: ignore[arg-type]
        except BaseException:
            self._process.kill()
            raise
        self._read = self._output.stat().st_size

    def _port(self, written: Path) -> int:
        end = time.monotonic() + START
        while time.monotonic() < end and self._process.poll() is None:
            if written.exists() and (text := written.read_text()):
                return int(text)
            time.sleep(0.05)
        raise RuntimeError(f"Firefox does not listen: see {self._output}")

    def quit(self) -> None:
        """End it."""
        super().quit()
        try:
            self._process.wait(START)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _inside(self, script: str, *arguments: object) -> Any:
        """What a script in the browser's own window returns."""
        self._marionette.send("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.execute_script(script, *arguments)
        finally:
            self._marionette.send("Marionette:SetContext", {"value": "content"})

    def emulate(self, scheme: str, medium: str) -> None:
        """A colour scheme of the desktop; a medium ("" is the screen)."""
        self._inside(EMULATE, scheme == "dark", medium)

    def resize(self, width: int, height: int) -> None:
        """The page's own size, in CSS pixels."""
        self._inside(RESIZE, width, height)
        end = time.monotonic() + START
        while self.execute_script(SIZE) != [width, height]:
            if time.monotonic() > end:
                raise TimeoutError(f"the page is {self.execute_script(SIZE)}, not {width, height}")
            time.sleep(0.02)

    def allow_scripts(self, allowed: bool) -> None:
        """Whether pages may run JavaScript, from the next one on."""
        self._inside(SCRIPTS, allowed)

    def get_log(self, log_type: str) -> list[str]:
        """What pages said on the console since the last call."""
        assert log_type == "browser"
        output = self._output.read_bytes()
        lines = output[self._read :].decode(errors="replace").splitlines()
        self._read = len(output)
        said = [line for line in lines if line.startswith("console.") and OWN not in line]
        return said + list(self._inside(MESSAGES))

    def count_time(self) -> None:
        """Let `busy` count from the next page on."""
        self.get("about:blank")
        self._before = {process: _time(process) for process in self._inside(PROCESSES)}

    def busy(self) -> float:
        """Seconds of CPU time of the page's thread, which may be that of earlier pages."""
        process = self._inside(PROCESS)
        return _time(process) - self._before.get(process, 0.0)


def _time(process: int) -> float:
    """Seconds that a process's first thread has run, user and system."""
    stat = Path(f"/proc/{process}/task/{process}/stat").read_text()
    return sum(map(int, stat.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
