"""References of the Gateway API's routes to their parents and backends."""

from dataclasses import dataclass

from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace, Port


@dataclass(frozen=True, slots=True, order=True)
class ParentRef:
    """A route's parent: an object, or a part of it by `section` (a port's name) or `port`.

    The group `core` is read as the empty one. `namespace` is None where the route does not give it, because
    the status repeats the reference as written; the route's namespace counts then.
    """

    kind: Kind
    name: str
    namespace: Namespace | None = None
    section: str | None = None
    port: Port | None = None


@dataclass(frozen=True, slots=True, order=True)
class BackendObject:
    """An object to which requests go, with the port of a Service; the object need not exist."""

    kind: Kind
    namespace: Namespace
    name: str
    port: Port | None = None
