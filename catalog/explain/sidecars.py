"""State of the sidecars on the path of a request, as the caller of an explanation knows it."""

from dataclasses import dataclass

from meshwright.mesh.gateway.routes import MatchPlace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HTTPMatch


@dataclass(frozen=True, slots=True)
class ExcludedPolicy:
    """A part of policy excluded from a sidecar's configuration: a match in all rules, or an object.

    A match of a Gateway API route is given by its place. `cause` is the error message of the rejecting proxy.
    With `is_replaced` the sidecar has an earlier version of the configuration with this part, so that earlier
    parts of policy are in force there.
    """

    object: ObjectKey
    match: HTTPMatch | MatchPlace | None
    cause: str
    is_replaced: bool = False

    def __str__(self) -> str:
        match self.match:
            case None:
                part = str(self.object)
            case MatchPlace():
                part = f"{self.match} of {self.object}"
            case HTTPMatch(name):
                part = f"match {name} of {self.object}"
        return f"{part}, which the proxy rejects: {self.cause}"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """State of one sidecar. `unknown` is a predicate with the reason for an unknown configuration."""

    unknown: str = ""
    without: tuple[ExcludedPolicy, ...] = ()
