"""Tests of unusual response codes over real sockets, with a minimal DNS server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import dns.message
import dns.rcode
import dns.rrset

from meshwright.mesh.names import IpAddress
from meshwright.providers.dns.nameserver import Nameserver
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, RecordType
from meshwright.providers.dns.resolver import Resolver

NAME = Question("db.mesh.test", RecordType.A)


class _Answering(asyncio.DatagramProtocol):
    """A server that answers every query with one response code, and with an address for NOERROR."""

    transport: asyncio.DatagramTransport

    def __init__(self, rcode: dns.rcode.Rcode) -> None:
        self._rcode = rcode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Send the answer."""
        question = dns.message.from_wire(data)
        response = dns.message.make_response(question)
        response.set_rcode(self._rcode)
        if self._rcode is dns.rcode.NOERROR:
            response.answer.append(dns.rrset.from_text("db.mesh.test.", 60, "IN", "A", "10.0.0.1"))
        self.transport.sendto(response.to_wire(), addr)


@contextlib.asynccontextmanager
async def _answering(rcode: dns.rcode.Rcode) -> AsyncIterator[Nameserver]:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Answering(rcode), ("127.0.0.1", 0))
    try:
        yield Nameserver(IpAddress("127.0.0.1"), transport.get_extra_info("sockname")[1])
    finally:
        transport.close()


async def test_servfail_or_refused_is_a_failure() -> None:
    """Both are failures that name the server, and never an empty answer, which would remove endpoints."""
    for rcode in (dns.rcode.SERVFAIL, dns.rcode.REFUSED):
        async with _answering(rcode) as server:
            text = f"127.0.0.1 port {server.port}: {dns.rcode.to_text(rcode)}"
            assert await Resolver((server,)).ask(NAME) == DnsFailure(text)


async def test_nxdomain_is_an_empty_answer() -> None:
    """NXDOMAIN is a valid answer without addresses."""
    async with _answering(dns.rcode.NXDOMAIN) as server:
        answer = await Resolver((server,)).ask(NAME)
    assert isinstance(answer, DnsAnswer)
    assert answer.addresses == ()


async def test_failed_nameserver_is_followed_by_the_next() -> None:
    """Nameservers are queried in the order of the setting."""
    async with _answering(dns.rcode.SERVFAIL) as bad, _answering(dns.rcode.NOERROR) as good:
        assert await Resolver((bad, good)).ask(NAME) == DnsAnswer(
            60, (IpAddress("10.0.0.1"),), nameserver=str(good)
        )
