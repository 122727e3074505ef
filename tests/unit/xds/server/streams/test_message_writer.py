"""Tests of the writer of a stream's messages, which needs no task of its own."""

import asyncio

import pytest

from tests.unit.xds.server.transports import Client
from xds.server.streams.message_writer import MessageWriter
from xds.transport import ClientDisconnected


async def test_message_is_begun_at_once_and_found_written_on_the_next_query() -> None:
    """The end of a write wakes no task. The message counts as sent when `is_free` is asked after it."""
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


async def test_callback_is_called_once_when_the_message_is_written() -> None:
    """A sender with another message asks for this callback."""
    client, called = Client(), list[bool]()
    outgoing = MessageWriter(client)
    outgoing.begin(b"one")
    outgoing.when_done(lambda _: called.append(outgoing.is_free()))
    await asyncio.sleep(0)
    assert called == []
    client.take()
    await asyncio.sleep(0)
    assert called == [True]


async def test_disconnected_client_is_reported_by_the_next_query() -> None:
    """`is_free` raises ClientDisconnected after a write has failed, and the message counts as unsent."""
    client = Client()
    outgoing = MessageWriter(client)
    outgoing.begin(b"one")
    client.break_off()
    with pytest.raises(ClientDisconnected):
        outgoing.is_free()
    assert client.sent == []


async def test_closed_writer_releases_the_write_in_progress(caplog: pytest.LogCaptureFixture) -> None:
    """The transport's coroutine is closed without a warning.

    The client may take the message, disconnect or wait.
    """
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
