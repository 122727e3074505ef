"""A minimal proxy that reads a document and admits exactly the callers that the document admits."""

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any


def mutual(held: dict[str, str], side: int, directory: Path) -> ssl.SSLContext:
    """Return a client or server TLS context from a document's credentials."""
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=held["trustBundle"])
    file = directory / f"{os.urandom(4).hex()}.pem"
    file.write_text(held["privateKey"] + held["certificateChain"])
    context.load_cert_chain(file)
    return context


def identities(connection: ssl.SSLObject) -> set[str]:
    """Return the SPIFFE identities in the peer's certificate."""
    shown: dict[str, Any] = connection.getpeercert() or {}
    return {str(value) for kind, value in shown.get("subjectAltName", ()) if kind == "URI"}


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes in one direction until its end."""
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def enforcing(body: bytes, directory: Path) -> AsyncIterator[dict[str, Any]]:
    """Serve a document's inbound ports with mutual TLS within the context."""
    answer = json.loads(body)
    context = mutual(answer["credentials"], ssl.PROTOCOL_TLS_SERVER, directory)

    async def listen(port: dict[str, Any]) -> asyncio.Server:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            known = identities(writer.get_extra_info("ssl_object"))
            if not known or not (port["everyone"] or known & set(port["admitted"])):
                writer.close()
                return
            inner, outer = await asyncio.open_connection(
                port["application"]["address"], port["application"]["port"]
            )
            await asyncio.gather(copy(reader, outer), copy(inner, writer))

        return await asyncio.start_server(accept, port["address"], port["port"], ssl=context)

    servers = [await listen(port) for port in answer["document"]["inbound"]]
    try:
        yield answer["document"]
    finally:
        for server in servers:
            server.close()
