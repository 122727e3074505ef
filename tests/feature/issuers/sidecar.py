"""A sidecar of the small shop, and its secrets from a server."""

import asyncio
import shutil

from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from tests.feature.serve.delta_sidecar import Sidecar
from tests.tools.program import SECONDS, Program, Server
from xds.protocol.resources.resource import SECRET


def secrets(program: Program, server: Server, wanted: int = 2) -> tuple[bytes, bytes]:
    """Return chain and roots as a sidecar gets them."""
    return asyncio.run(_asked(program, str(server.bound["ads"]), wanted))


async def _asked(program: Program, address: str, wanted: int) -> tuple[bytes, bytes]:
    sidecar, running = come(program, address)
    async with asyncio.timeout(SECONDS):
        while len(there := found(sidecar)) < wanted:
            assert not running.done()
            await asyncio.sleep(0.02)
    await gone(running)
    (chain,) = (secret for secret in there if secret.HasField("tls_certificate"))
    (roots,) = (secret for secret in there if secret.HasField("validation_context"))
    return (
        chain.tls_certificate.certificate_chain.inline_bytes,
        roots.validation_context.trusted_ca.inline_bytes,
    )


def come(program: Program, address: str) -> tuple[Sidecar, asyncio.Task[None]]:
    """Connect the sidecar. The caller must end it."""
    name = "one.store.shop"
    for end in ("pem", "key"):
        shutil.copy(program.files / "one" / f"proxy.{end}", program.files / "one" / f"{name}.{end}")
    sidecar = Sidecar(name)
    return sidecar, asyncio.create_task(sidecar.run(address, program.files / "one"))


async def gone(running: asyncio.Task[None]) -> None:
    """End the sidecar."""
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def found(sidecar: Sidecar) -> list[secret_pb2.Secret]:
    """Return the sidecar's current secrets."""
    resources = (
        resource
        for response in sidecar.responses
        if response.type_url == SECRET
        for resource in response.resources
    )
    newest = {resource.name: secret_pb2.Secret.FromString(resource.resource.value) for resource in resources}
    return list(newest.values())
