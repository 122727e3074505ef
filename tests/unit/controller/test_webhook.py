"""What the webhook shows in handshakes: renewed while the server runs, for the host that is dialled."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.issuers.authority import CertificateAuthority
from certs.pair_files import PairFiles
from controller.webhook import WebhookTls
from mesh.names import TrustDomain

HOST = "meshwright.mesh-system.svc"


async def _shown(shows: WebhookTls, roots: bytes) -> bytes:
    """Return the certificate that an API server sees, which it must be able to verify."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    trusting = ssl.create_default_context(cadata=roots.decode("ascii"))
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=shows.context) as server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname=HOST)
        certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
    return certificate


async def test_a_renewed_certificate_is_shown_at_once(tmp_path: Path) -> None:
    """By the same context: the server goes on listening. One that is not due stays."""
    now = datetime.now(UTC)
    authority = CertificateAuthority.open(tmp_path, TrustDomain("cluster.local"), now - timedelta(days=99))
    shows = WebhookTls(authority, PairFiles(tmp_path), HOST, now - timedelta(days=61))
    first = await _shown(shows, authority.trust_bundle())
    shows.renew(now - timedelta(days=2))
    assert await _shown(shows, authority.trust_bundle()) == first
    shows.renew(now)
    assert await _shown(shows, authority.trust_bundle()) != first
