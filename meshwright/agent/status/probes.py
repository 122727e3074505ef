"""Probes of the application: called on the agent, and executed over loopback, which is not intercepted.

A kubelet's own probe would go through the proxy without a certificate, and be refused.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from meshwright.agent.errors import AgentError
from meshwright.agent.interception.addresses import has_ipv6
from meshwright.agent.status.http_probe import Caller, get
from meshwright.sidecars.layout import PROBE_PREFIX

PORT_HEADER: Final = "istio-app-probe-port"
"""With this header any path is requested from the named port of the application."""
_LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_IPV6: Final = "::1"
_NOBODY: Final = Caller()


class ProbeConfigError(AgentError, ValueError):
    """A probe is not described as in Kubernetes; the message names the probe and the fault."""


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """GET of a path; a status from 200 to 399 is success, as for a kubelet."""

    port: int
    path: str = "/"
    secure: bool = False
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TcpProbe:
    """A probe by a TCP connection to a port."""

    port: int


@dataclass(frozen=True, slots=True)
class GrpcProbe:
    """A probe by a call of the standard gRPC health service; SERVING is success."""

    port: int
    service: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """The action for a path of the agent, for example `/app-health/web/readyz`, and its time limit."""

    how: HttpProbe | TcpProbe | GrpcProbe
    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Probes:
    """All probes of a workload, by the agent's path."""

    address: str = _LOOPBACK
    by_path: Mapping[str, Probe] = field(default_factory=dict)
    ports: frozenset[int] = frozenset()
    """Allowed ports in PORT_HEADER."""

    @property
    def reachable(self) -> frozenset[int]:
        """Return the known ports of the application; a redirect may lead only to these."""
        return self.ports | {probe.how.port for probe in self.by_path.values()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The HTTP status of the answer to the kubelet's probe, and the reason."""

    status: int
    words: str


def read_probes(document: object) -> dict[str, Probe]:
    """Parse probes by path, each as in Kubernetes with numeric ports; raise ProbeConfigError."""
    if not isinstance(document, dict):
        raise ProbeConfigError("probes must be an object with paths as keys")
    return {str(path): _probe(str(path), item) for path, item in sorted(document.items())}


def _probe(path: str, document: object) -> Probe:
    if not path.startswith(PROBE_PREFIX):
        raise ProbeConfigError(f"probe {path}: the path must begin with {PROBE_PREFIX}")
    if not isinstance(document, dict):
        raise ProbeConfigError(f"probe {path}: must be an object with httpGet, tcpSocket or grpc")
    seconds = document.get("timeoutSeconds", 1)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or seconds <= 0:
        raise ProbeConfigError(
            f"probe {path}: timeoutSeconds is {seconds!r}: must be a number greater than 0"
        )
    match document:
        case {"httpGet": dict(http)}:
            headers = tuple(
                (str(http_header["name"]), str(http_header["value"]))
                for http_header in http.get("httpHeaders", ())
            )
            secure = str(http.get("scheme", "HTTP")).upper() == "HTTPS"
            return Probe(
                HttpProbe(_port(path, http), str(http.get("path") or "/"), secure, headers), float(seconds)
            )
        case {"tcpSocket": dict(tcp)}:
            return Probe(TcpProbe(_port(path, tcp)), float(seconds))
        case {"grpc": dict(grpc)}:
            return Probe(GrpcProbe(_port(path, grpc), str(grpc.get("service") or "")), float(seconds))
        case _:
            raise ProbeConfigError(f"probe {path}: must have one of httpGet, tcpSocket and grpc")


def _port(path: str, described: Mapping[str, object]) -> int:
    port = described.get("port")
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        raise ProbeConfigError(f"probe {path}: port is {port!r}: must be a number from 1 to 65535")
    return port


def chosen(probes: Probes, path: str, header: str | None) -> Probe | Outcome:
    """Return the probe for a request, or the answer if the probe is missing."""
    if header is not None:
        if not header.isascii() or not header.isdigit() or int(header) not in probes.ports:
            return Outcome(400, f"{PORT_HEADER} is {header!r}, which is not a port of the application")
        return Probe(HttpProbe(int(header), path))
    probe = probes.by_path.get(path)
    return probe if probe is not None else Outcome(404, f"unknown probe {path}")


async def carry_out(
    probe: Probe, address: str, caller: Caller = _NOBODY, ports: frozenset[int] = frozenset()
) -> Outcome:
    """Call the application for a caller. Failures are not raised; they give status 503.

    A redirect is followed to the probe's own port and to `ports`. If the application refuses connections on
    IPv4 loopback, IPv6 loopback is tried, because the application may listen on IPv6 only, and the sidecar
    connects in the same way.
    """
    try:
        async with asyncio.timeout(probe.seconds):
            outcome = await _carried_out(probe, address, caller, ports)
            if outcome.status < 400 or address != _LOOPBACK or not await _is_deaf(address, probe.how.port):
                return outcome
            return await _carried_out(probe, _LOOPBACK_IPV6, caller, ports)
    except TimeoutError:
        return Outcome(503, f"timed out after {probe.seconds:g} s")


async def _carried_out(probe: Probe, address: str, caller: Caller, ports: frozenset[int]) -> Outcome:
    try:
        match probe.how:
            case HttpProbe() as http:
                return await _http(http, address, caller, ports | {http.port})
            case TcpProbe(port):
                _, writer = await asyncio.open_connection(address, port)
                writer.close()
                return Outcome(200, "connected")
            case GrpcProbe(port, service):
                return await _grpc(f"{_bracketed(address)}:{port}", service)
    except TimeoutError:
        raise
    except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: a redirect to an invalid URL
        return Outcome(503, f"{type(error).__name__}: {error}")


async def _is_deaf(address: str, port: int) -> bool:
    """Return whether nothing listens on a port, on a machine with IPv6."""
    if not has_ipv6():
        return False
    try:
        _, writer = await asyncio.open_connection(address, port)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    writer.close()
    return False


async def _http(probe: HttpProbe, address: str, caller: Caller, ports: frozenset[int]) -> Outcome:
    scheme = "https" if probe.secure else "http"
    path = probe.path if probe.path.startswith("/") else f"/{probe.path}"
    url = f"{scheme}://{_bracketed(address)}:{probe.port}{path}"
    return Outcome(*await get(url, probe.headers, caller, ports))


async def _grpc(target: str, service: str) -> Outcome:
    from meshwright.agent.status.grpc_probe import (
        is_serving,  # gRPC takes its time and memory: only where it is needed
    )

    words = await is_serving(target, service)
    return Outcome(503, words) if words else Outcome(200, "SERVING")


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
