"""Tests of a gRPC call against arbitrary servers: an answer or CallFailed, and no other error."""

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from meshwright.agent.statistics.grpc_call import MOST_BYTES, Call, CallFailed

OK = [("grpc-status", "0")]
RESPONSE = [(":status", "200"), ("content-type", "application/grpc")]
PATH = "/meshwright.enrolment.v1.Renewal/Report"


def framed(message: bytes) -> bytes:
    """Return a message with gRPC's length prefix."""
    return b"\0" + len(message).to_bytes(4, "big") + message


class Server:
    """A server made of the HTTP/2 library: the received request, and methods to answer."""

    def __init__(self, window: int = 65_535) -> None:
        self.connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.connection.initiate_connection()
        self.connection.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.asked: dict[str, str] = {}
        self.body = b""
        self.is_whole = False

    def take(self, received: bytes) -> None:
        """Process bytes of the client, and open the window for more."""
        for event in self.connection.receive_data(received):
            if isinstance(event, RequestReceived):
                self.asked = dict(event.headers)  # type: ignore[arg-type] # they are text
            elif isinstance(event, DataReceived):
                self.body += event.data or b""
                self.connection.acknowledge_received_data(event.flow_controlled_length or 0, 1)
            elif isinstance(event, StreamEnded):
                self.is_whole = True

    def answer(self, *parts: bytes, trailers: list[tuple[str, str]] = OK) -> None:
        """Answer with these pieces of content."""
        self.connection.send_headers(1, RESPONSE)
        for part in parts:
            self.connection.send_data(1, part)
        self.connection.send_headers(1, trailers, end_stream=True)

    def said(self) -> bytes:
        """Return the bytes to send."""
        return self.connection.data_to_send()


def begun(message: bytes = b"report", window: int = 65_535) -> tuple[Call, Server]:
    """Start a call, and let the server receive all that it can."""
    call, server = Call("ads.example", PATH, message), Server(window)
    call.take(server.said())
    for _ in range(1000):
        sent = call.to_send()
        if not sent:
            break
        server.take(sent)
        if answer := server.said():
            call.take(answer)
    return call, server


def failed(call: Call, server: Server) -> str:
    """Return the error of a call after the server's bytes."""
    with pytest.raises(CallFailed) as exception_info:
        call.take(server.said())
        call.to_send()
        call.take(b"")
    return str(exception_info.value)


@given(st.binary(max_size=100_000), st.sampled_from([1, 100, 65_535]), st.binary(max_size=300))
def test_message_is_sent_whole_and_its_answer_is_read(message: bytes, window: int, answer: bytes) -> None:
    """A message is sent whole through any window size, and the answer is read byte by byte."""
    if window == 1:
        message = message[:400]
    call, server = begun(message, window)
    assert server.is_whole
    assert server.body == framed(message)
    assert {
        name: server.asked[name] for name in (":method", ":path", ":authority", "te", "content-type")
    } == {
        ":method": "POST",
        ":path": PATH,
        ":authority": "ads.example",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    server.answer(framed(answer)[:3], framed(answer)[3:])
    for number in server.said():  # byte by byte, as a network may bring it
        call.take(bytes([number]))
    assert call.is_over
    assert call.answer() == answer


@pytest.mark.parametrize(
    ("trailers", "status", "words"),
    [
        ([("grpc-status", "7"), ("grpc-message", "refused")], 7, "refused"),
        ([("grpc-status", "3"), ("grpc-message", "run is %27%27")], 3, "run is ''"),
        ([("grpc-status", "x")], 2, "HTTP 200"),
        ([("grpc-message", "no status")], 2, "no status"),
    ],
)
def test_error_has_its_status_and_message(trailers: list[tuple[str, str]], status: int, words: str) -> None:
    """The status and the message are read from trailers, also if there are no headers before them."""
    call, server = begun()
    server.answer(trailers=trailers)
    call.take(server.said())
    with pytest.raises(CallFailed) as exception_info:
        call.answer()
    assert (exception_info.value.status, str(exception_info.value)) == (status, words)
    alone, server = begun()
    server.connection.send_headers(1, [*RESPONSE, *trailers], end_stream=True)
    alone.take(server.said())
    with pytest.raises(CallFailed) as exception_info:
        alone.answer()
    assert exception_info.value.status == status


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0\5four", b"\1\0\0\0\0", framed(b"a") + framed(b"b")])
def test_answer_that_is_not_a_single_message_fails(content: bytes) -> None:
    """An empty, cut-off, compressed or double message is a failed call."""
    call, server = begun()
    server.answer(content)
    call.take(server.said())
    with pytest.raises(CallFailed, match="not a single message"):
        call.answer()


def test_endless_answer_is_not_kept_in_memory() -> None:
    """An answer over the limit fails, so that a server cannot fill the agent's memory."""
    call, server = begun()
    server.connection.send_headers(1, RESPONSE)
    with pytest.raises(CallFailed, match=f"longer than {MOST_BYTES} bytes"):
        for _ in range(1000):
            server.connection.send_data(1, b"x" * 10_000)
            call.take(server.said())
            server.take(call.to_send())


@pytest.mark.parametrize(
    "code", [ErrorCodes.NO_ERROR, ErrorCodes.REFUSED_STREAM, ErrorCodes.ENHANCE_YOUR_CALM]
)
@pytest.mark.parametrize("message", [b"small", b"x" * 90_000])
def test_reset_stream_or_closed_connection_fails_the_call(code: ErrorCodes, message: bytes) -> None:
    """The end of the stream or connection fails the call, also while much of the message is unsent."""
    for ends in ("stream", "connection"):
        call, server = Call("ads.example", PATH, message), Server()
        call.take(server.said())
        server.take(call.to_send())
        if ends == "stream":
            server.connection.reset_stream(1, code)
        else:
            server.connection.close_connection(code)
        assert failed(call, server)


@given(st.binary(min_size=1, max_size=200))
def test_arbitrary_bytes_give_an_answer_or_call_failed(noise: bytes) -> None:
    """No other error is raised, because it would end the calling task and with it the proxy."""
    call, server = begun()
    text = "an answer, or none yet"
    try:
        call.take(server.said() + noise)
        call.to_send()
        call.take(noise)
        call.to_send()
        call.answer()
    except CallFailed as failed:
        text = str(failed)
    assert text


def test_connection_end_without_an_answer_fails_the_call() -> None:
    """The end of the connection without an answer, for example of a killed server, fails the call."""
    call, _ = begun()
    with pytest.raises(CallFailed, match="ended without an answer"):
        call.take(b"")
