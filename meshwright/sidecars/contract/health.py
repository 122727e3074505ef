"""Health probes of a driver's control plane."""

import enum
from dataclasses import dataclass


class ProbeScheme(enum.StrEnum):
    """HTTP: a GET of the path succeeds with a status from 200 to 399. TCP: a connection succeeds."""

    HTTP = "http"
    TCP = "tcp"


@dataclass(frozen=True, slots=True)
class HealthProbe:
    """One probe of an open port, for example a GET of `/ready` at port 15128.

    Raises ValueError for an HTTP probe without a path, and for a TCP probe with one.

    With `counted` the driver reports the probe's connection to its observer like the handshake of a client;
    the control plane subtracts its own connections.
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
    """The three probes of Kubernetes for a driver's control plane."""

    liveness: HealthProbe
    readiness: HealthProbe
    startup: HealthProbe
