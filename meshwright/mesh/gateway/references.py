"""References of the Gateway API's routes to their parents and backends."""

from dataclasses import dataclass
from typing import Final

from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace, Port

CORE: Final = "core"
"""Group of Services in early documentation of the Gateway API; the group's real name is empty."""


@dataclass(frozen=True, slots=True, order=True)
class ParentRef:
    """A route's parent: an object, or a part of it by `section` (a port's name) or `port`.

    `namespace` is None where the route does not give it; the route's namespace counts then. The group `core`
    is read as the empty one, and `is_core` is true where it is written so. Both are kept because the status
    repeats each reference as written, and a route may refer to one object in several ways.
    """

    kind: Kind
    name: str
    namespace: Namespace | None = None
    section: str | None = None
    port: Port | None = None
    is_core: bool = False


@dataclass(frozen=True, slots=True, order=True)
class BackendObject:
    """An object to which requests go, with the port of a Service; the object need not exist."""

    kind: Kind
    namespace: Namespace
    name: str
    port: Port | None = None
