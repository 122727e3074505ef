"""The health probes of a driver's control plane: what asks whether it has begun, serves, is of use."""

import enum
from dataclasses import dataclass


class ProbeScheme(enum.StrEnum):
    """HTTP: GET the path, a status from 200 to 399 is success. TCP: a connection is, and there is no path."""

    HTTP = "http"
    TCP = "tcp"


@dataclass(frozen=True, slots=True)
class HealthProbe:
    """How to ask; `port` is really listened on. ValueError for a path that does not fit the scheme.

    `counted`: the driver tells its observer of the connection as of a client's handshake; the control plane
    takes out those that it made itself.
    """

    port: int
    scheme: ProbeScheme = ProbeScheme.TCP
    path: str = ""
    timeout_seconds: float = 1.0
    counted: bool = False

    def __post_init__(self) -> None:
        if (self.scheme is ProbeScheme.HTTP) != self.path.startswith("/"):
            raise ValueError(f"a probe by {self.scheme} cannot have the path {self.path!r}")


@dataclass(frozen=True, slots=True)
class HealthProbes:
    """The three probes, as Kubernetes has them."""

    liveness: HealthProbe
    readiness: HealthProbe
    startup: HealthProbe
