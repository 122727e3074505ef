"""The port for clients: options of gRPC, and TLS files read again at each handshake."""

import asyncio
import ipaddress
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from xds.errors import XdsError
from xds.limits import Limits
from xds.server.tls import Plaintext, TlsIdentity


class ListenError(XdsError, OSError):
    """The address cannot be listened on."""


def options(limits: Limits) -> list[tuple[str, int]]:
    """Return the options of gRPC. Limits set here are cheap, because gRPC applies them in its own threads."""
    at_once = limits.streams_per_certificate
    return [
        # Twice the limit of a client, because earlier streams may be ending: gRPC counts a reset stream until
        # it is freed, and refuses new ones (`grpc.http.overload_protection`, on by default).
        ("grpc.max_concurrent_streams", 2**31 - 1 if at_once is None else 2 * at_once),
        # Each reset causes a ping, and fewer streams may be opened until the client answers it.
        ("grpc.http2.ping_on_rst_stream_percent", 100),
        ("grpc.server_handshake_timeout_ms", round(limits.handshake_seconds * 1000)),
        ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a share of the clients
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.http2.bdp_probe", 0),
        # New streams wait for their turn. By default gRPC cancels some at random if more than 1000 wait.
        ("grpc.server.max_pending_requests", limits.streams or 2**31 - 1),
        ("grpc.server.max_pending_requests_hard_limit", limits.streams or 2**31 - 1),
        # Longer than the default of 30 s: waiting is better for a client than having to retry.
        ("grpc.server_max_unrequested_time_in_server", max(1, round(limits.unserved_seconds))),
        # S14: with the defaults gRPC ends idle streams of clients that send pings ("too many pings").
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]


def listen(
    server: grpc.aio.Server,
    address: str,
    tls: Callable[[], TlsIdentity] | Plaintext,
    accepted: Callable[[], None],
) -> int:
    """Listen on `host:port` and return the port. `accepted` is called at each TLS handshake.

    Raises ListenError if the port is not available, or for plaintext on an address that is not loopback.
    """
    try:
        return _listen(server, address, tls, accepted)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {address}: {error}") from error


def _listen(
    server: grpc.aio.Server,
    address: str,
    tls: Callable[[], TlsIdentity] | Plaintext,
    accepted: Callable[[], None],
) -> int:
    if not isinstance(tls, Plaintext):
        return int(server.add_secure_port(address, _credentials(tls, accepted, asyncio.get_running_loop())))
    try:
        is_loopback = ipaddress.ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise ListenError(f"without TLS only a loopback address can be listened on, not {address}")
    return int(server.add_insecure_port(address))


def _credentials(
    tls: Callable[[], TlsIdentity], accepted: Callable[[], None], loop: asyncio.AbstractEventLoop
) -> grpc.ServerCredentials:
    shown = tls()

    def configuration() -> Any:  # noqa: ANN401 (grpc has no types)
        return grpc.ssl_server_certificate_configuration(
            [(shown.key, shown.chain)], root_certificates=shown.trust_bundle
        )

    def fetch() -> Any:  # noqa: ANN401 (grpc has no types)
        nonlocal shown
        loop.call_soon_threadsafe(accepted)
        identity = tls()
        if identity == shown:
            # None means "unchanged". Otherwise gRPC would replace its TLS context at each handshake, which is
            # expensive and can crash while another handshake begins (grpc/grpc#36693).
            return None
        shown = identity
        return configuration()

    demanded = not shown.open_to_all
    return grpc.dynamic_ssl_server_credentials(configuration(), fetch, require_client_authentication=demanded)
