"""Test of an enrolment port whose client disconnects before the response."""

import asyncio

import pytest
import structlog

from certs.errors import IssuerError
from meshwright.enrolment.limits import EnrolmentLimits
from meshwright.enrolment.proofs.contract import ProofRefused
from meshwright.enrolment.server import EnrolmentPort
from xds.hooks import Peer
from xds.server.tls import TlsIdentity


def no_identity() -> TlsIdentity:
    """Fail: the test serves no TLS."""
    raise AssertionError


@pytest.mark.parametrize(
    ("error", "events"),
    [
        (RuntimeError("ours"), ["request failed"]),
        (IssuerError("no disk"), ["certificate signing failed"]),
        (ProofRefused("token_expired"), []),
        (None, []),
    ],
)
async def test_server_fault_is_logged_although_the_client_has_disconnected(
    error: Exception | None, events: list[str]
) -> None:
    """The request continues to its end, so that the use of its token can be given back.

    Refusals are not logged here, because they are logged where they are decided.
    """
    going, begun, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(request: bytes, peer: Peer) -> bytes:
        begun.set()
        await going.wait()
        done.set()
        if error is not None:
            raise error
        return request

    port = EnrolmentPort("s", {"Join": answer}, no_identity, EnrolmentLimits(), lambda *_: None)
    asked = asyncio.create_task(port._answered(answer, b"", Peer(None, "10.0.0.1:5")))
    await begun.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    with structlog.testing.capture_logs() as logs:
        going.set()
        await done.wait()
        for _ in range(3):
            await asyncio.sleep(0)
    assert [log["event"] for log in logs] == events
    assert not port._under_way
