"""Answers that a sound server does not give: over real sockets, from a few lines that answer an rcode."""

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
    """Answers every question with one rcode, and an address where that is NOERROR."""

    transport: asyncio.DatagramTransport

    def __init__(self, rcode: dns.rcode.Rcode) -> None:
        self._rcode = rcode

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket."""
        self.transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer."""
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


async def test_a_server_that_fails_has_given_no_answer() -> None:
    """SERVFAIL and REFUSED are failures, and say whose; they are never an empty answer."""
    for rcode in (dns.rcode.SERVFAIL, dns.rcode.REFUSED):
        async with _answering(rcode) as server:
            said = f"127.0.0.1 port {server.port}: {dns.rcode.to_text(rcode)}"
            assert await Resolver((server,)).ask(NAME) == DnsFailure(said)


async def test_that_there_is_no_such_name_is_an_answer() -> None:
    """NXDOMAIN: empty, and not a failure."""
    async with _answering(dns.rcode.NXDOMAIN) as server:
        answer = await Resolver((server,)).ask(NAME)
    assert isinstance(answer, DnsAnswer)
    assert answer.addresses == ()


async def test_the_next_nameserver_is_asked_where_one_fails() -> None:
    """In the order of the setting."""
    async with _answering(dns.rcode.SERVFAIL) as bad, _answering(dns.rcode.NOERROR) as good:
        assert await Resolver((bad, good)).ask(NAME) == DnsAnswer(
            60, (IpAddress("10.0.0.1"),), nameserver=str(good)
        )
