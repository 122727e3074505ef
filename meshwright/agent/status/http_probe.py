"""HTTP probe with a kubelet's headers and redirects (Kubernetes 1.34, pkg/probe/http)."""

import ssl
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp

_MOST_BYTES: Final = 10 * 1024
_MOST_REQUESTS: Final = 10
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_PORTS: Final = {"http": 80, "https": 443}
"""Default ports of URL schemes; other schemes are refused."""
_SINGLE: Final = ("Accept", "Host", "User-Agent")
"""Headers of which a kubelet sends only the first value, and omits an empty one."""
_NOT_OURS: Final = ("Accept", "Accept-Encoding", "User-Agent")
"""Headers otherwise added by the client library."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of the agent: User-Agent, for example `kube-probe/1.31`, and the `Host` of the request."""

    user_agent: str | None = None
    host: str = ""


async def get(
    url: str, headers: Sequence[tuple[str, str]], caller: Caller, ports: Collection[int]
) -> tuple[int, str]:
    """GET a URL of the application; return status and reason of the last answer.

    Certificates are not verified. A redirect is followed only to the same host, or the host in the caller's
    request, and only to `ports`, because the agent can reach more ports on loopback than a kubelet. Any other
    redirect is returned like an ordinary answer. Raises ClientError, OSError, or ValueError for an invalid
    URL.
    """
    sent = _headers(headers, caller)
    connector = aiohttp.TCPConnector(ssl=_insecure(), force_close=True)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_NOT_OURS,
        auto_decompress=False,
    ) as session:
        for _ in range(_MOST_REQUESTS):
            async with session.get(url, headers=sent, allow_redirects=False) as response:
                await response.content.read(_MOST_BYTES)
                location = response.headers.get("Location", "")
                is_redirect = response.status in _REDIRECTS
                following = _following(url, location, caller, ports) if is_redirect else None
                if following is None:
                    return response.status, response.reason or ""
            url = following
            if urlsplit(location).scheme:
                # As in Go's client: an absolute URL determines the host.
                sent = [item for item in sent if item[0] != "Host"]
    return 503, f"more than {_MOST_REQUESTS - 1} redirects"


def _following(url: str, location: str, caller: Caller, ports: Collection[int]) -> str | None:
    """Return the target of a redirect; None if not followed."""
    if not location:
        return None
    here, there = urlsplit(url), urlsplit(urljoin(url, location))
    if there.hostname is None or there.hostname not in (here.hostname, urlsplit(f"//{caller.host}").hostname):
        return None
    port = there.port or _PORTS.get(there.scheme)
    if port is not None and port not in ports:
        return None
    return _at(there, here).geturl()


def _at(there: SplitResult, here: SplitResult) -> SplitResult:
    """Return a URL with another address.

    With the pod's own address the request would go through the proxy.
    """
    name = f"[{here.hostname}]" if ":" in (here.hostname or "") else here.hostname
    return there._replace(netloc=f"{name}" if there.port is None else f"{name}:{there.port}")


def _headers(own: Sequence[tuple[str, str]], caller: Caller) -> list[tuple[str, str]]:
    """Return a probe's headers, with a kubelet's defaults for missing ones."""
    kubelets = {"Accept": "*/*"}
    if caller.user_agent is not None:
        kubelets["User-Agent"] = caller.user_agent
    given = {name.title() for name, _ in own}
    sent = [*own, *((name, value) for name, value in kubelets.items() if name not in given)]
    firsts = {name: next((value for item, value in sent if item.title() == name), "") for name in _SINGLE}
    others = [(name, value) for name, value in sent if name.title() not in _SINGLE]
    return [*others, *((name, value) for name, value in firsts.items() if value)]


def _insecure() -> ssl.SSLContext:
    # Without the CAs of the system, which nothing would use, and which take 20 ms to load for each probe.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
