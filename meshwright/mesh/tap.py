"""Taps: filters of requests for a live view, and the record of a watched request."""

from dataclasses import dataclass
from datetime import datetime

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Port


@dataclass(frozen=True, slots=True, order=True)
class TapChoice:
    """Filter of requests to a service; a request must match all fields.

    Empty `callers`, `methods` or `path_prefix` match everything. Paths are compared without their query.
    """

    callers: tuple[ServiceIdentity, ...] = ()
    methods: tuple[str, ...] = ()
    path_prefix: str = ""

    def fits(self, request: "TappedRequest") -> bool:
        """Return whether the filter matches a request."""
        return (
            (not self.callers or request.caller in self.callers)
            and (not self.methods or request.method in self.methods)
            and request.path.startswith(self.path_prefix)
        )


Tapped = tuple[TapChoice, ...]
"""Filters watched together; a request must match one. Sorted, without duplicates; may be empty."""


@dataclass(frozen=True, slots=True)
class TappedRequest:
    """One finished request, without headers and body, and without the query of the path.

    - `caller`: identity in the client's certificate of the mesh; None for other clients, with an `address`.
    - `port`: called port, 0 if unknown.
    - `status`: HTTP status, 0 without an answer; `grpc_status` is None unless the call was gRPC.
    - `flags`: Envoy's response flags, by the names in the access log service, for example
      `NO_HEALTHY_UPSTREAM`.
    - `policy`: admitting object, or empty.
    Sizes are sizes of bodies, in bytes.
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
