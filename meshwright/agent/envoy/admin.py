"""Client of Envoy's admin interface, with a check that the answer is from the agent's own Envoy."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import aiohttp

from meshwright.agent.bounded_body import TooLarge, UnreadableBody, body
from meshwright.agent.errors import AgentError
from meshwright.mesh.host_port import HostPort

MOST_BYTES: Final = 64 * 1024 * 1024
"""Greatest size of an answer in bytes; the listeners of a proxy may take megabytes."""
_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)


class AdminUnreachable(AgentError):
    """Envoy's admin interface does not answer, or not as expected."""


class AnswerTooLarge(AdminUnreachable):
    """Envoy's answer is larger than MOST_BYTES."""


class AnotherEnvoy(AdminUnreachable):
    """Another Envoy listens at the admin address, so the answers are not about this proxy."""


class EnvoyAdmin:
    """The admin interface of the Envoy with this `bootstrap`; an async context manager.

    The interface listens on a Unix socket (a Path) or HOST:PORT. Before each request the client checks which
    Envoy answers. An Envoy that cannot bind the port exits, and the port stays with another Envoy, which must
    not be trusted or drained.
    """

    def __init__(self, address: HostPort | Path, bootstrap: Path) -> None:
        self.address = address
        self._bootstrap = str(bootstrap)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # A connection is tied to one epoch, but the next request must reach the current one.
        self._session = aiohttp.ClientSession(
            timeout=_TIMEOUT,
            connector=_connector(self.address),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
        )
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def text(self, path: str, method: str = "GET") -> str:
        """Request a path, and return the body of an answer with status 200; else raise AdminUnreachable."""
        await self.server_info()
        return await self._text(path, method)

    async def json(self, path: str) -> Mapping[str, object]:
        """Request a path, and return the JSON object in the answer; raise AdminUnreachable."""
        await self.server_info()
        return await self._json(path)

    async def server_info(self) -> Mapping[str, object]:
        """Return the server info of the agent's own Envoy; raise AdminUnreachable or AnotherEnvoy."""
        result = await self._json("/server_info")
        theirs = _options(result).get("config_path")
        if theirs != self._bootstrap:
            raise AnotherEnvoy(
                f"another Envoy answers at {self.address}: it runs with "
                f"{theirs or 'an unknown file'} instead of {self._bootstrap}; give each proxy on "
                "this machine its own --admin"
            )
        return result

    async def live_epoch(self) -> int | None:
        """Return the restart epoch of the answering Envoy if its state is LIVE, else None."""
        try:
            result = await self.server_info()
        except AdminUnreachable:
            return None
        if result.get("state") != "LIVE":
            return None
        epoch = _options(result).get("restart_epoch", 0)
        return epoch if isinstance(epoch, int) else None

    async def _text(self, path: str, method: str = "GET") -> str:
        if self._session is None:
            raise AdminUnreachable("the admin client is not open")
        try:
            async with self._session.request(
                method, f"http://{_host(self.address)}{path}", allow_redirects=False
            ) as response:
                content = await body(response, MOST_BYTES)
        except TooLarge as error:
            raise AnswerTooLarge(f"{method} {path}: the answer is not taken: {error}") from error
        except UnreadableBody as error:
            raise AdminUnreachable(f"{method} {path}: the answer is not taken: {error}") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise AdminUnreachable(
                f"the admin interface of Envoy at {self.address} does not answer: {error}"
            ) from error
        text = content.decode("utf-8", errors="replace")  # another program may answer
        if response.status != 200:
            raise AdminUnreachable(f"{method} {path}: status {response.status}: {text.strip()[:200]}")
        return text

    async def _json(self, path: str) -> Mapping[str, object]:
        try:
            result = json.loads(await self._text(path))
        except (ValueError, RecursionError) as error:
            raise AdminUnreachable(f"GET {path}: the answer is not JSON") from error
        if not isinstance(result, dict):
            raise AdminUnreachable(f"GET {path}: the answer is not a JSON object")
        return result


def _connector(at: HostPort | Path) -> aiohttp.BaseConnector:
    match at:
        case Path():
            return aiohttp.UnixConnector(str(at), force_close=True)
        case HostPort():
            return aiohttp.TCPConnector(force_close=True)


def _host(at: HostPort | Path) -> str:
    return "localhost" if isinstance(at, Path) else str(at)


def _options(server_info: Mapping[str, object]) -> Mapping[str, object]:
    result = server_info.get("command_line_options")
    return result if isinstance(result, dict) else {}
