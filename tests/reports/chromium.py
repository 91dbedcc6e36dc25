"""A real headless Chromium for the tests of the report, driven by Selenium.

Browser and driver are the distribution's: Selenium is given both, so that it looks for none and
downloads none. Every console message and every request that the page makes is recorded.
"""

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

KEYS = {
    "ArrowLeft": Keys.ARROW_LEFT, "ArrowRight": Keys.ARROW_RIGHT, "Home": Keys.HOME,
    "End": Keys.END, "PageUp": Keys.PAGE_UP, "PageDown": Keys.PAGE_DOWN, "Tab": Keys.TAB,
    "Enter": Keys.ENTER,
}  # fmt: skip


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
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            f"--window-size={width},{height}", f"--user-data-dir={self._home.name}/profile",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
        ):  # fmt: skip
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
        try:
            self._driver = webdriver.Chrome(options=options, service=service)
        except BaseException:
            self._home.cleanup()
            raise
        # The browser's own first page asks for much; what is asked from here on is the test's.
        self._driver.get("about:blank")
        self.requests()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the session, the browser and the driver."""
        self._driver.quit()
        self._home.cleanup()

    def open(self, path: Path, fragment: str = "") -> float:
        """Loads a page from disk; seconds until its load event, its script's start included."""
        begin = time.monotonic()
        self._driver.get(path.resolve().as_uri() + fragment)
        return time.monotonic() - begin

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that the body of a function returns inside the page."""
        return self._driver.execute_script(script, *arguments)

    def cdp(self, command: str, **parameters: Any) -> Any:
        """One command of the Chrome DevTools protocol."""
        return self._driver.execute_cdp_cmd(command, parameters)

    def click(self, selector: str) -> None:
        """A real click in the middle of the first such element, scrolled into view."""
        self._driver.find_element(By.CSS_SELECTOR, selector).click()

    def write(self, selector: str, text: str) -> None:
        """Types into an element."""
        self._driver.find_element(By.CSS_SELECTOR, selector).send_keys(text)

    def press(self, *names: str) -> None:
        """Presses and releases keys, one after the other, wherever the focus is."""
        chain = ActionChains(self._driver, duration=0)
        for name in names:
            key = KEYS.get(name, name)
            chain.key_down(key).key_up(key)
        chain.perform()

    def click_at(self, x: float, y: float) -> None:
        """A mouse click at a point of the window, CSS pixels."""
        actions = ActionBuilder(self._driver, duration=0)
        actions.pointer_action.move_to_location(round(x), round(y)).click()
        actions.perform()

    def text(self, selector: str) -> str:
        """The visible text of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def console(self) -> list[str]:
        """What was written to the console since the last call: errors, warnings, refusals."""
        return [f"{r['level']}: {r['message']}" for r in self._driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that was asked for since the last call."""
        rows = self._driver.get_log("performance")
        messages = [json.loads(r["message"])["message"] for r in rows]
        return [
            m["params"]["request"]["url"]
            for m in messages
            if m["method"] == "Network.requestWillBeSent"
        ]
