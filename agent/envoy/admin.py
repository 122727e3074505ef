"""Asking Envoy's admin interface, which is on loopback and belongs to this agent's Envoy alone."""

import json
from collections.abc import Mapping
from typing import Final, Self

import aiohttp

from agent.errors import AgentError

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)


class AdminUnreachable(AgentError):
    """Envoy's admin interface does not answer, or not as it should."""


class EnvoyAdmin:
    """Envoy's admin interface at HOST:PORT; an asynchronous context manager."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # A connection belongs to one epoch: the next call must reach whoever listens by then.
        self._session = aiohttp.ClientSession(
            timeout=_TIMEOUT, connector=aiohttp.TCPConnector(force_close=True)
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def text(self, path: str, method: str = "GET") -> str:
        """Return the body of an answer of 200; raise AdminUnreachable for anything else."""
        if self._session is None:
            raise AdminUnreachable("the admin client is not open")
        try:
            async with self._session.request(method, f"http://{self.address}{path}") as response:
                body = await response.text()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise AdminUnreachable(f"Envoy's admin at {self.address} does not answer: {error}") from error
        if response.status != 200:
            raise AdminUnreachable(f"{method} {path}: status {response.status}: {body.strip()[:200]}")
        return body

    async def json(self, path: str) -> Mapping[str, object]:
        """Return an answer that is a JSON object; raise AdminUnreachable."""
        try:
            found = json.loads(await self.text(path))
        except ValueError as error:
            raise AdminUnreachable(f"GET {path}: the answer is no JSON") from error
        if not isinstance(found, dict):
            raise AdminUnreachable(f"GET {path}: the answer is no JSON object")
        return found

    async def live_epoch(self) -> int | None:
        """Return the epoch that answers, if it is live; None otherwise."""
        try:
            found = await self.json("/server_info")
        except AdminUnreachable:
            return None
        options = found.get("command_line_options")
        if found.get("state") != "LIVE" or not isinstance(options, dict):
            return None
        return int(options.get("restart_epoch", 0))
