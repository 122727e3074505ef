"""Redirects as Envoy makes them, with the port that the new location needs."""

from http import HTTPStatus
from typing import Final

from meshwright.mesh.gateway.filters import PathForm, Redirect
from meshwright.mesh.names import Port
from meshwright.sidecars.envoy.routes.rewrites import path_change, whole_path
from protos.envoy.config.route.v3 import route_components_pb2

_Action = route_components_pb2.RedirectAction
_CODES: Final = {
    HTTPStatus.MOVED_PERMANENTLY: _Action.MOVED_PERMANENTLY,
    HTTPStatus.FOUND: _Action.FOUND,
    HTTPStatus.SEE_OTHER: _Action.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT: _Action.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT: _Action.PERMANENT_REDIRECT,
}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def redirect(wanted: Redirect, called: Port, matched: str) -> _Action:
    """Return a redirect of requests to the `called` port, whose paths begin with `matched`."""
    message = _Action(response_code=_CODES[HTTPStatus(wanted.status)])
    if wanted.scheme is not None:
        message.scheme_redirect = wanted.scheme
    if wanted.host is not None:
        # Envoy drops the port of the request with its host.
        message.host_redirect = wanted.host
    port = _shown(wanted, called)
    if port is not None:
        message.port_redirect = port
    if wanted.path is not None:
        if wanted.path.form is PathForm.FULL:
            message.path_redirect = whole_path(wanted.path)
        elif (change := path_change(wanted.path, matched)).substitution is not None:
            message.regex_rewrite.CopyFrom(change.substitution)
        elif change.prefix is not None:
            message.prefix_rewrite = change.prefix
    return message


def _shown(wanted: Redirect, called: Port) -> Port | None:
    """Return the port of the new location, None if it has none.

    A default port is not written. Envoy leaves the port of the request's host, though, which has one unless
    the called port is 80 (RFC 9110, section 7.2), so a default port that replaces it must be written.
    """
    # Sidecars get requests of the mesh as plain HTTP.
    default = _DEFAULT_PORTS[wanted.scheme or "http"]
    if wanted.port != default:
        return wanted.port
    return None if wanted.host is not None or called == _DEFAULT_PORTS["http"] else wanted.port
