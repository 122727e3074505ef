"""A real Chromium, controlled by its devtools protocol: pages at a width, their look and content."""

import base64
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

DEADLINE = 60.0
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--remote-debugging-port=0"),
)


def program() -> str | None:
    """Return the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextlib.contextmanager
def running(chromium: str, folder: Path) -> Iterator[str]:
    """Run a Chromium with its files in a folder; yield the address of its devtools."""
    port = folder / "DevToolsActivePort"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            (chromium, *_FLAGS, f"--user-data-dir={folder}", "about:blank"),
            stdout=log,
            stderr=log,
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
            start_new_session=True,
        )
    try:
        limit = time.monotonic() + DEADLINE
        while not (port.exists() and len(lines := port.read_text().splitlines()) == 2):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < limit, (folder / "log").read_text()
            time.sleep(0.02)
        yield f"ws://127.0.0.1:{lines[0]}{lines[1]}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # Debian's is a script, which would end alone
        process.wait(DEADLINE)


@dataclass
class Browser:
    """A connection to a Chromium, with one page open."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        number = next(self._numbers)
        session = {"sessionId": self.session} if self.session else {}
        await self.socket.send_json({"id": number, "method": method, "params": parameters} | session)
        while (answer := await self._heard()).get("id") != number:
            continue
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    async def look(self, width: int, *, dark: bool) -> None:
        """Set the page's width, emulating a telephone if it is narrow, and its colour scheme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        await self.ask("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.ask("Emulation.setEmulatedMedia", features=features)

    async def open(self, address: str) -> None:
        """Open a page and wait until it is loaded."""
        result = await self.ask("Page.navigate", url=address)
        assert not result.get("errorText"), (address, result)
        await self.loaded()

    async def run(self, script: str) -> Any:
        """Return the value of a script in the page."""
        result = await self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key."""
        code = {"Tab": 9, "Enter": 13}[key]
        for kind in ("keyDown", "keyUp"):
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    async def submit(self, form: str) -> None:
        """Submit a form and wait until the response is loaded."""
        await self.run(f"document.querySelector('{form}').requestSubmit()")
        await self.loaded()

    async def photograph(self, to: Path) -> None:
        """Write a picture of the whole page."""
        result = await self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        to.write_bytes(base64.b64decode(result["data"]))

    async def loaded(self) -> None:
        """Wait until the page that is being loaded is complete."""
        while (await self._heard()).get("method") != "Page.loadEventFired":
            continue

    async def _heard(self) -> dict[str, Any]:
        result: dict[str, Any] = await self.socket.receive_json(timeout=DEADLINE)
        return result


@contextlib.asynccontextmanager
async def browsing(address: str) -> AsyncIterator[Browser]:
    """Connect to a running Chromium, and open an empty page."""
    async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
        browser = Browser(socket)
        target = await browser.ask("Target.createTarget", url="about:blank")
        attached = await browser.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        browser.session = attached["sessionId"]
        await browser.ask("Page.enable")
        yield browser
