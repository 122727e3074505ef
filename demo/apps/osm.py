"""Programs with the commands, flags and environment of Open Service Mesh's manifests.

    python -m demo.apps.osm bookbuyer|bookthief|bookstore|bookwarehouse|mysql [--port N]
    python -m demo.apps.osm purchase|relay|call URL

`purchase` buys 20 books and ends, for a Job; `relay` connects standard input and output to the control socket
of a program; `call` makes one request and prints its outcome.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import aiohttp

from demo.apps import names, relay
from demo.apps.__main__ import run
from demo.apps.probe import call
from demo.apps.settings import AppSettings

CONTROL: Final = Path("/tmp/bookstore.sock")  # noqa: S108 - a container's own
PORT: Final = 14001
LINGER_SECONDS: Final = 5.0
"""Seconds to serve after SIGTERM, because clients learn only later that the Pod ends."""
_PURCHASES: Final = 20
_ROLES: Final = {
    "bookbuyer": "client",
    "bookthief": "client",
    "bookstore": "store",
    "bookwarehouse": "warehouse",
    "mysql": "database",
}


def settings(program: str, port: int, environment: Mapping[str, str]) -> AppSettings:
    """Return the settings of a program of OSM's demo, from the manifest's environment and built-in values."""
    warehouse = f"bookwarehouse.{environment.get('BOOKWAREHOUSE_NAMESPACE', 'bookwarehouse')}"
    return AppSettings(
        name=environment.get("IDENTITY", program),
        control=CONTROL,
        listen=None if _ROLES[program] == "client" else ("0.0.0.0", port),
        bookstore=_bookstore(environment),
        bookwarehouse=f"http://{warehouse}:{PORT}",
        database=("mysql.bookwarehouse", 3306),
        linger=0.0 if _ROLES[program] == "client" else LINGER_SECONDS,
        pod=environment.get("HOSTNAME", ""),
        logged=True,
    )


def _bookstore(environment: Mapping[str, str]) -> str:
    service = environment.get("BOOKSTORE_SVC", "bookstore")
    return f"http://{service}.{environment.get('BOOKSTORE_NAMESPACE', 'bookstore')}:{PORT}"


async def _serve(program: str, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(_ROLES[program], settings(program, port, os.environ), stop)


async def _purchase() -> int:
    """Buy books; return the number of failed purchases."""
    url = _bookstore(os.environ) + names.BUY_A_BOOK
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        result = [await call(session, "GET", url, names.client_headers("job")) for _ in range(_PURCHASES)]
    failed = [outcome for outcome, identity in result if not identity]
    print(f"bought {len(result) - len(failed)} of {len(result)}{f', {failed}' if failed else ''}")
    return len(failed)


async def _call(url: str) -> str:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20)) as session:
        outcome, _ = await call(session, "GET", url, {})
    return outcome


def main(argv: Sequence[str]) -> int:
    """Run one program of OSM's demo until SIGTERM or its end; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m demo.apps.osm", description=__doc__)
    parser.add_argument("program", choices=[*_ROLES, "purchase", "relay", "call"])
    parser.add_argument("url", nargs="?", default="")
    parser.add_argument("--port", type=int, default=None)
    arguments = parser.parse_args(argv)
    match arguments.program:
        case "purchase":
            return 1 if asyncio.run(_purchase()) else 0
        case "relay":
            asyncio.run(relay.serve(CONTROL))
        case "call":
            print(asyncio.run(_call(arguments.url)))
        case program:
            asyncio.run(_serve(program, arguments.port or (3306 if program == "mysql" else PORT)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
