"""Tests of Envoy's log lines as lines of the agent's log."""

import asyncio
import logging

from structlog.testing import capture_logs

from meshwright.agent.envoy.words import Words, read_words, relay

WARNED = (
    "[2026-11-22 10:00:00.123][47][warning][config] [source/common/config/grpc_stream.h:155] closed: 14, no"
)


def test_log_line_has_envoy_s_level_logger_and_place() -> None:
    """A line of another form continues the line before, with the same level."""
    assert read_words(WARNED) == Words(
        logging.WARNING, "envoy.config", "source/common/config/grpc_stream.h:155", "closed: 14, no"
    )
    assert (
        read_words("[2026-11-22 10:00:00.123][47][critical][backtrace] Caught SIGSEGV").level
        == logging.CRITICAL
    )
    assert read_words("  #0: [0x55]", logging.CRITICAL) == Words(
        logging.CRITICAL, "envoy", "", "  #0: [0x55]"
    )


async def test_log_in_pieces_is_relayed_as_whole_lines() -> None:
    """Pieces are joined to lines, also without a final newline.

    Bytes that are not text are escaped, and very long lines are split.
    """
    text = WARNED.encode() + b"\n\n\xff\n" + b"x" * 200_000 + b"\nlast"
    stream = asyncio.StreamReader()
    with capture_logs() as lines:
        relaying = asyncio.create_task(relay(stream))
        for begin in range(0, len(text), 37):
            stream.feed_data(text[begin : begin + 37])
            if begin % 370 == 0:
                await asyncio.sleep(0)
        stream.feed_eof()
        await relaying
    texts = [str(line["event"]) for line in lines]
    assert (texts[0], texts[1], texts[-1]) == ("closed: 14, no", "\\xff", "last")
    assert "".join(texts[2:-1]) == "x" * 200_000
    assert {line["source"] for line in lines} == {"envoy"}
