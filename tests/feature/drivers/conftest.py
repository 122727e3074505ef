"""Fixtures of a server with the document driver, and of document readers with real certificates."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certs.keys.pair import Pair
from tests.feature.identity.conftest import Server, serve

__all__ = ["serve"]

Read = Callable[..., Any]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """A factory of readers, each with its own certificate."""
    numbers = iter(range(1000))

    @asynccontextmanager
    async def reading(server: Server, pair: Pair | None) -> AsyncIterator[Callable[..., Any]]:
        context = ssl.create_default_context(cadata=server.authority.trust_bundle().decode())
        if pair is not None:
            file = tmp_path / f"reader-{next(numbers)}.pem"
            file.write_bytes(pair.key.reveal() + pair.chain_pem)
            context.load_cert_chain(file)
        address = server.bound.drivers["document"]
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:

            async def get(etag: str = "", wait: float = 0) -> tuple[int, str, bytes]:
                headers = {"If-None-Match": etag} if etag else {}
                url = f"https://{address}/v1/document?wait={wait}"
                async with session.get(url, headers=headers) as response:
                    return response.status, response.headers.get("ETag", ""), await response.read()

            yield get

    return reading


@pytest.fixture
async def documents(serve: Callable[..., Any]) -> Callable[..., Any]:
    """A function that starts a server which also listens for document readers."""

    async def start(*manifests: str, **settings: object) -> Server:
        fields = {"driver_addresses": "document=127.0.0.1:0", **settings}
        server = await serve(*manifests, **fields)
        assert isinstance(server, Server)
        return server

    return start
