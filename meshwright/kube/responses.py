"""HTTP answers: bodies, and the errors in answers without success."""

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from meshwright.kube.call import JSON, Call
from meshwright.kube.errors import ApiError, KubeError, Nonsense, Reason, shortened

LONGEST_ANSWER: Final = 64 * 1024 * 1024
"""Maximum bytes of an answer that is read as a whole."""


def demand_json(answer: aiohttp.ClientResponse, call: Call) -> None:
    """Raise Nonsense for an HTTP answer other than JSON, for example from a captive portal."""
    if not answer.content_type.startswith(JSON):
        kind = shortened(answer.content_type)
        raise Nonsense(
            f"cannot {call.verb} {call.object_text}: the answer is {kind}, not JSON: the address is "
            "probably not that of an API server"
        )


async def body(answer: aiohttp.ClientResponse, call: Call) -> bytes:
    """Return the body of an answer; raise Nonsense if too large, and the errors of aiohttp."""
    parts: list[bytes] = []
    size = 0
    async for part in answer.content.iter_any():
        size += len(part)
        if size > LONGEST_ANSWER:
            text = (
                f"cannot {call.verb} {call.object_text}: the answer is larger than {LONGEST_ANSWER >> 20} MiB"
            )
            raise Nonsense(text, Reason.TOO_LARGE)
        parts.append(part)
    return b"".join(parts)


async def refusal(answer: aiohttp.ClientResponse, call: Call) -> KubeError:
    """Return the error in an answer without success, which may come from a proxy instead of Kubernetes."""
    try:
        body = await answer.content.read(65536)
    except (aiohttp.ClientError, OSError, TimeoutError):
        body = b""
    status: Mapping[str, Any] = {}
    with contextlib.suppress(ValueError, RecursionError):
        result = json.loads(body)
        status = result if isinstance(result, dict) and result.get("kind") == "Status" else {}
    if answer.status < 400:
        return Nonsense(
            f"cannot {call.verb} {call.object_text}: the server redirects to another address "
            f"({answer.status})"
        )
    text = str(status.get("message") or "") or (answer.reason or "")
    return ApiError(
        answer.status,
        str(status.get("reason") or ""),
        text,
        verb=call.verb,
        resource=call.granted,
        object_text=call.object_text,
        named=bool(call.name),
        retry_after=_retry_after(answer.headers.get("Retry-After", "")),
    )


def _retry_after(header: str) -> float | None:
    return float(header) if header.isascii() and header.isdigit() and len(header) < 6 else None


def connection_cause(error: Exception) -> str:
    """Return the cause of a connection error, with equal words for equal causes."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | ssl.SSLCertVerificationError():
            inner = getattr(error, "certificate_error", error)
            why = getattr(inner, "verify_message", "") or inner
            return f"the certificate of the server is not trusted: {shortened(str(why))}"
        case aiohttp.InvalidURL():
            # The URL is not shown, because it may contain a password.
            return "the URL of the server or of the proxy is invalid"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy refuses the connection: {error.status} {shortened(error.message)}"
        case aiohttp.ClientConnectorDNSError():
            return f"host {error.host} cannot be resolved"
        case aiohttp.ClientConnectorError():
            return _of_system(error.os_error)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "the connection was closed"
        case asyncio.TimeoutError():
            return "no answer in time"
        case OSError():
            return _of_system(error)
        case _:
            return f"{type(error).__name__}: {shortened(str(error))}"


def _of_system(error: OSError) -> str:
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()  # asyncio adds addresses to the error's own text
    return (error.strerror or shortened(str(error)) or type(error).__name__).lower()
