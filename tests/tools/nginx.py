"""A real nginx for tests of the documentation's recipes for a proxy in front of a mesh."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

DEADLINE: Final = 20.0

_CONFIGURATION: Final = """
daemon off;
master_process off;
pid nginx.pid;
error_log stderr info;
events {{}}
http {{
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen {address}:{port};
    proxy_bind {address};
    {locations}
  }}
}}
"""


def program() -> str | None:
    """Return the path of an nginx, or None; Debian installs it outside the users' PATH."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@asynccontextmanager
async def running(nginx: str, folder: Path, address: str, port: int, locations: str) -> AsyncIterator[Path]:
    """Run an nginx in a folder that has the files of the locations; yield its log.

    It listens at an address, and calls from that address.
    """
    file, log = folder / "nginx.conf", folder / "nginx.log"
    file.write_text(_CONFIGURATION.format(address=address, port=port, locations=locations))
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(nginx, "-p", str(folder), "-c", str(file), "-e", "stderr"), stderr=stderr
        )
    try:
        async with asyncio.timeout(DEADLINE):
            while not await _listens(address, port):
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.02)
        yield log
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _listens(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    return True
