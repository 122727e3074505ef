"""Command `python -m tests.tools.screenshot`: a picture of a page of the console.

The README's picture is of the running demo. `make screenshot` writes docs/images/console.png anew.
"""

import argparse
import asyncio
import base64
import tempfile
from pathlib import Path

from tests.tools.browser import browsing, program, running

WIDTH = 1300


async def take(chromium: str, page: str, height: int, to: Path) -> None:
    """Write a picture of the upper part of a page, in the light colour scheme; `height` is in pixels."""
    # Processes of Chromium may write to the folder for a moment after the first one has ended.
    temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with temporary as folder, running(chromium, Path(folder)) as address:
        async with browsing(address) as browser:
            await browser.look(WIDTH, dark=False)
            await browser.open(page)
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
            result = await browser.ask(
                "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
            )
    to.write_bytes(base64.b64decode(result["data"]))


def main() -> None:
    """Take a picture as the command line asks."""
    parser = argparse.ArgumentParser(description="Write a picture of a page of the console.")
    parser.add_argument("page", help="Address of the page, for example http://127.0.0.1:9092/debug.")
    parser.add_argument("to", type=Path, help="PNG file to write.")
    parser.add_argument("--height", type=int, default=900, help="Height in pixels. Default: 900.")
    arguments = parser.parse_args()
    chromium = program()
    if chromium is None:
        parser.error("there is no Chromium: `make system` installs one")
    asyncio.run(take(chromium, arguments.page, arguments.height, arguments.to))


if __name__ == "__main__":
    main()
