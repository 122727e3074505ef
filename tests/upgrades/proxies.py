"""Proxies and machines that know neither release: mTLS, xDS and enrolment as bytes of the protocols."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import grpc.aio

from tests.feature.identity.grpc_machine import JOIN, Answered, Machine, call
from tests.feature.rejection import conftest as rejecting
from tests.feature.rejection.test_rejections import SHOP
from tests.feature.serve.delta_sidecar import Sidecar
from tests.tools.deadline import until
from tests.tools.program import Program, Server
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, ResourceName, TypeUrl
from xds.stream_status import Variant

CHANGED: frozenset[TypeUrl] = frozenset()
"""Types whose resources differ between the two releases, never secrets or endpoints.

The changelog must name them, because proxies get these resources again.
"""
ALL = (CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET)
DATABASE = (ENDPOINT, ResourceName("shop/db|8080"))
SAVED = ("dns-answers.json", "rejected-policy.json")
Versions = Mapping[TypeUrl, Mapping[str, str]]


@dataclass(frozen=True)
class Received:
    """Resources of a proxy: the version of each, except of CHANGED types, and the addresses of endpoints."""

    versions: Versions
    endpoints: Mapping[str, set[str]]


def received(program: Program, server: Server, uuid: str) -> Received | None:
    """Connect with the proxy's certificate, and return its resources; None if the server refuses it."""
    return asyncio.run(_received(program.files / uuid, str(server.bound["ads"]), f"{uuid}.store.shop"))


async def _received(folder: Path, address: str, name: str) -> Received | None:
    for end in ("pem", "key"):
        shutil.copy(folder / f"proxy.{end}", folder / f"{name}.{end}")
    sidecar = Sidecar(name)
    running = asyncio.create_task(sidecar.run(address, folder))
    await until(
        lambda: running.done() or (sidecar.held().keys() == set(ALL) and sidecar.has_all()),
    )
    refused = running.done()
    if not refused:  # a call that is cancelled takes acknowledgements with it that are not read yet
        await sidecar.leave()
    await asyncio.gather(running, return_exceptions=True)
    if refused:
        return None
    versions = {kind: found for kind, found in sidecar.held().items() if kind not in CHANGED}
    return Received(versions, sidecar.endpoints)


def picky(program: Program, server: Server, credentials: Path) -> rejecting.Sidecar:
    """Connect a sidecar that rejects a poisonous route.

    Return when it has endpoints and an accepted route, and when the server has written the files.
    """
    return asyncio.run(_picky(program.state, str(server.bound["ads"]), credentials))


async def _picky(state: Path, address: str, credentials: Path) -> rejecting.Sidecar:
    ca, key, chain = ((credentials / name).read_bytes() for name in ("ca.pem", "proxy.key", "proxy.pem"))
    tls = grpc.ssl_channel_credentials(ca, key, chain)
    sidecar = rejecting.Sidecar(
        "one.buyer.shop", Variant.DELTA, lambda value: b"poison" in value, rejecting.WORDS
    )
    async with grpc.aio.secure_channel(address, tls, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        stream = asyncio.create_task(sidecar.run(channel))
        try:
            await until(lambda: sidecar.held.get(DATABASE) and sidecar.routes(SHOP))
            await until(lambda: all((state / name).exists() for name in SAVED))
        finally:
            stream.cancel()
            await asyncio.gather(stream, return_exceptions=True)
    return sidecar


def joined(program: Program, server: Server, token: str, uuid: str) -> Answered:
    """Join with a token; write the certificate into a directory named after the UUID."""
    machine = Machine()
    answered = asyncio.run(_joined(program, str(server.bound["enrolment"]), token, machine))
    if answered.message:
        folder = program.files / uuid
        folder.mkdir()
        (folder / "proxy.key").write_bytes(machine.pem)
        (folder / "proxy.pem").write_bytes(answered.certificate.chain_pem)
        (folder / "ca.pem").write_bytes((program.state / "ca" / "ca.pem").read_bytes())
    return answered


async def _joined(program: Program, address: str, token: str, machine: Machine) -> Answered:
    roots = grpc.ssl_channel_credentials((program.state / "ca" / "ca.pem").read_bytes())
    async with grpc.aio.secure_channel(address, roots, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        return await call(channel, JOIN, machine.joining(token))


def token(program: Program, uuid: str) -> str:
    """Create a join token for one use by the proxy with this UUID."""
    at = ("--state", str(program.state), "--service", "store", "--namespace", "shop", "--uuid", uuid)
    return str(document(program, "certs", "token", "create", *at, "--anyway")["token"])


def document(program: Program, *words: str) -> dict[str, object]:
    """Run a command with `--json`, which must succeed, and return its output."""
    status, out, complaint = program.run(*words, "--json")
    assert status == 0, complaint
    result: dict[str, object] = json.loads(out)
    return result
