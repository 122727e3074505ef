"""What a stream sends is written by whoever is at work on it: no task waits for it to be gone."""

import asyncio

import pytest

from tests.unit.xds.server.transports import Client
from xds.server.streams.message_writer import MessageWriter
from xds.transport import ClientDisconnected


async def test_a_message_is_begun_at_once_and_found_written_when_somebody_asks() -> None:
    """The loop has no part in it: that it has gone wakes nobody."""
    client = Client()
    outgoing = MessageWriter(client)
    assert outgoing.is_free()
    outgoing.begin(b"one")
    seen = [(outgoing.since is not None, outgoing.is_free(), client.sent.copy())]
    client.take()
    await asyncio.sleep(0)
    seen.append((outgoing.since is not None, client.sent == [], []))
    seen.append((outgoing.since is not None, outgoing.is_free(), client.sent.copy()))
    assert seen == [(True, False, []), (False, True, []), (False, True, [b"one"])]


async def test_who_waits_is_called_once_when_it_has_gone() -> None:
    """Whoever has more to say asks to be called."""
    client, called = Client(), list[bool]()
    outgoing = MessageWriter(client)
    outgoing.begin(b"one")
    outgoing.when_done(lambda _: called.append(outgoing.is_free()))
    await asyncio.sleep(0)
    assert called == []
    client.take()
    await asyncio.sleep(0)
    assert called == [True]


async def test_a_client_that_has_gone_is_known_to_who_asks_next() -> None:
    """Once: what comes after it is another message's."""
    client = Client()
    outgoing = MessageWriter(client)
    outgoing.begin(b"one")
    client.break_off()
    with pytest.raises(ClientDisconnected):
        outgoing.is_free()
    assert client.sent == []


async def test_what_is_cut_off_is_let_go(caplog: pytest.LogCaptureFixture) -> None:
    """The transport's coroutine is over, whether the client takes it, goes, or does nothing."""
    for end in (lambda _: None, Client.take, Client.break_off):
        client = Client()
        outgoing = MessageWriter(client)
        outgoing.begin(b"one")
        end(client)
        outgoing.close()
        assert not client.is_written_to
        assert outgoing.is_free()
        del client, outgoing
        await asyncio.sleep(0)
    assert not caplog.records
