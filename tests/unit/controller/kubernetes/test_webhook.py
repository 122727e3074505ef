"""Tests of the webhook's certificate: renewal while the server runs."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.state.pair_files import PairFiles
from meshwright.controller.kubernetes import webhook
from meshwright.controller.kubernetes.webhook import WebhookTls
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority

HOST = "meshwright.mesh-system.svc"


async def _shown(shows: WebhookTls, roots: bytes) -> bytes:
    """Return the certificate that an API server sees and can verify."""

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


async def test_renewed_certificate_is_used_at_once(tmp_path: Path) -> None:
    """The same TLS context shows the renewed certificate, so that the server keeps listening.

    A certificate that is not due is kept.
    """
    now = datetime.now(UTC)
    authority = own_authority(tmp_path, TrustDomain("cluster.local"), now - timedelta(days=99))
    shows = WebhookTls(authority, PairFiles(tmp_path), HOST, now - timedelta(days=51))
    first = await _shown(shows, authority.trust_bundle())
    shows.renew(now - timedelta(days=12))
    assert await _shown(shows, authority.trust_bundle()) == first
    shows.renew(now)
    assert await _shown(shows, authority.trust_bundle()) != first


async def test_failed_renewal_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a free file descriptor the renewal fails; the task continues and retries."""
    now = datetime.now(UTC)
    authority = own_authority(tmp_path, TrustDomain("cluster.local"), now - timedelta(days=99))
    shows = WebhookTls(authority, PairFiles(tmp_path), HOST, now - timedelta(days=51))
    tries, again = [0], asyncio.Event()
    loop = asyncio.get_running_loop()

    def refused(*_: object) -> None:
        tries[0] += 1
        if tries[0] > 1:
            loop.call_soon_threadsafe(again.set)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(webhook, "load_key_pair", refused)
    monkeypatch.setattr(webhook, "look_again_after", lambda *_: timedelta(0))
    renewing = asyncio.create_task(shows.renewing(lambda: now))
    async with asyncio.timeout(10):
        await again.wait()
    assert not renewing.done()
    renewing.cancel()
    await asyncio.wait([renewing])
