"""A real headless Chromium, driven through chromedriver by the W3C WebDriver protocol.

Standard library only. It records every console message and every network request that the page
makes, which is what the tests of the report look at.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "Home": "\ue011", "End": "\ue010",
    "PageUp": "\ue00e", "PageDown": "\ue00f", "Tab": "\ue004", "Enter": "\ue007",
}  # fmt: skip


class BrowserError(RuntimeError):
    """Chromium or chromedriver refused; the text is theirs."""


def missing() -> str | None:
    """What is not installed, in words; None where all is."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if not absent:
        return None
    return f"{' and '.join(absent)} not found: apt-get install chromium chromium-driver"


class Browser:
    """One session. Use as a context manager: leaving it ends the browser and the driver."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="report-browser-")
        self._log = Path(self._home.name) / "driver.log"
        environment = {**os.environ, "HOME": self._home.name}
        with self._log.open("wb") as log:
            self._driver = subprocess.Popen(
                ["chromedriver", "--port=0"], stdout=log, stderr=log, env=environment
            )
        self._base = f"http://127.0.0.1:{self._port()}"
        arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--window-size={width},{height}", f"--user-data-dir={self._home.name}/profile",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
        ]  # fmt: skip
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        try:
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BrowserError:
            self.close()
            raise
        self._base += f"/session/{answer['sessionId']}"
        # The browser's own first page asks for much; what is asked from here on is the test's.
        self._call("POST", "/url", {"url": "about:blank"})
        self.requests()

    def _port(self) -> int:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for line in self._log.read_text().splitlines():
                if "started successfully on port " in line:
                    return int(line.rsplit(" ", 1)[1].rstrip("."))
            time.sleep(0.05)
        self.close()
        raise BrowserError("chromedriver did not start")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session, the browser and the driver."""
        if "/session/" in getattr(self, "_base", ""):
            self._call("DELETE", "")
        self._driver.terminate()
        self._driver.wait(20)
        self._home.cleanup()

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(json.load(error)["value"]["message"]) from None

    def open(self, path: Path, fragment: str = "") -> float:
        """Loads a page from disk; seconds until its load event, its script's start included."""
        begin = time.monotonic()
        self._call("POST", "/url", {"url": path.resolve().as_uri() + fragment})
        return time.monotonic() - begin

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that the body of a function returns inside the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command: str, **parameters: Any) -> Any:
        """One command of the Chrome DevTools protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def find(self, selector: str) -> str:
        """The id of the first element that a CSS selector finds."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        return str(found[ELEMENT])

    def click(self, selector: str) -> None:
        """A real click in the middle of the element, scrolled into view."""
        self._call("POST", f"/element/{self.find(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        """Types into an element."""
        self._call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, *names: str) -> None:
        """Presses and releases keys, one after the other, wherever the focus is."""
        actions = []
        for name in names:
            key = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._call(
            "POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        )

    def click_at(self, x: float, y: float) -> None:
        """A mouse click at a point of the window, CSS pixels."""
        point = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        steps = [point, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        mouse = {
            "type": "pointer",
            "id": "mouse",
            "parameters": {"pointerType": "mouse"},
            "actions": steps,
        }
        self._call("POST", "/actions", {"actions": [mouse]})

    def text(self, selector: str) -> str:
        """The visible text of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def console(self) -> list[str]:
        """What was written to the console since the last call: errors, warnings, refusals."""
        rows = self._call("POST", "/se/log", {"type": "browser"})
        return [f"{r['level']}: {r['message']}" for r in rows]

    def requests(self) -> list[str]:
        """Every address that was asked for since the last call."""
        rows = self._call("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(r["message"])["message"] for r in rows]
        return [
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
        ]
