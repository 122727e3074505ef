"""Taps: which requests somebody watches while they are served, and what is told of each."""

from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port


@dataclass(frozen=True, slots=True, order=True)
class TapChoice:
    """Which requests to a service are watched: those that fit all of it.

    `callers` empty is everybody, `methods` empty is any, `path_prefix` empty is any path. A path is compared
    without its query.
    """

    callers: tuple[ServiceIdentity, ...] = ()
    methods: tuple[str, ...] = ()
    path_prefix: str = ""

    def fits(self, request: "TappedRequest") -> bool:
        """Say whether a request is one of them."""
        return (
            (not self.callers or request.caller in self.callers)
            and (not self.methods or request.method in self.methods)
            and request.path.startswith(self.path_prefix)
        )


Tapped = tuple[TapChoice, ...]
"""What is watched together: requests that fit one of them. Sorted, each once; empty is nothing."""


@dataclass(frozen=True, slots=True)
class TappedRequest:
    """One request that was answered, or ended otherwise; no header, no body, and of its path no query.

    `caller` is who showed a certificate of the mesh, None for others, who have an `address` too. `port` is
    the one that was called, 0 where it is not known. `status` is 0 where it ended without an answer,
    `grpc_status` that of a call of gRPC, None of others. `flags` are Envoy's, by the names of its access log
    service. `policy` is the object that admitted it, empty where none did. Sizes are of bodies, in bytes.
    """

    at: datetime
    caller: ServiceIdentity | None
    address: str
    port: Port
    method: str
    authority: str
    path: str
    status: int
    grpc_status: int | None
    flags: tuple[str, ...]
    details: str
    policy: str
    seconds: float
    received_bytes: int
    sent_bytes: int
