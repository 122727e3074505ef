"""Changes of a request by the sidecars on the way: first the client's, then the server's.

A part of the oracle; see `catalog.oracle.decide`.
"""

from catalog.oracle.request.paths import LocalReply, hidden_dots
from catalog.oracle.request.request import Request, passed, path_of
from catalog.oracle.request.upgrades import offered, too_many
from catalog.oracle.routing import sent
from catalog.oracle.targets import Place
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.targets import served_by
from catalog.relations.backends.workloads import backing
from catalog.store.inventory import by_identity
from catalog.store.view import View
from meshwright.mesh.service import EscapedSlashes, ServicePort


def at_client(view: View, request: Request, port: ServicePort) -> Request | LocalReply:
    """Return a request as seen by the client's sidecar, for splits; unchanged on a TCP port."""
    if not spoken(port, backing(view, request.service)).is_http:
        return request
    if (answer := too_many(offered(request, view.settings.long_lived.upgrades))) is not None:
        return answer
    slashes = view.services[request.service].escaped_slashes
    return passed(request, slashes, view.settings.long_lived.upgrades)


def at_server(view: View, request: Request, place: tuple[Place, bool]) -> Request | LocalReply:
    """Return a request as seen by the server's sidecar, for rules, including the client sidecar's changes."""
    where, is_http = place
    if not is_http:
        return request
    slashes = _slashes_at(view, where)
    result = passed(sent(view, request), slashes, view.settings.long_lived.upgrades)
    if isinstance(result, LocalReply):
        return result
    # Only the server's sidecar checks this, because only its rules decide about access by path.
    return hidden_dots(path_of(result).encode()) or result


def _slashes_at(view: View, where: Place) -> EscapedSlashes:
    """Return the handling of escaped slashes at a workload's port: kept if a Service requests so."""
    for workload in by_identity(view).lookup(where.identity):
        for number, _, called in served_by(view, workload):
            if number == where.port and any(
                service.escaped_slashes is EscapedSlashes.KEEP for service in called
            ):
                return EscapedSlashes.KEEP
    return EscapedSlashes.REJECT
