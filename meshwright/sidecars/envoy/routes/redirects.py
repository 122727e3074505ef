"""Redirects as Envoy makes them, with the port that the new location needs."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from meshwright.mesh.gateway.filters import PathForm, Redirect
from meshwright.sidecars.envoy.routes.rewrites import path_change, whole_path
from meshwright.sidecars.envoy.rules.matching import full_match
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.type.matcher.v3 import string_pb2

_Action = route_components_pb2.RedirectAction
_Header = route_components_pb2.HeaderMatcher
_CODES: Final = {
    HTTPStatus.MOVED_PERMANENTLY: _Action.MOVED_PERMANENTLY,
    HTTPStatus.FOUND: _Action.FOUND,
    HTTPStatus.SEE_OTHER: _Action.SEE_OTHER,
    HTTPStatus.TEMPORARY_REDIRECT: _Action.TEMPORARY_REDIRECT,
    HTTPStatus.PERMANENT_REDIRECT: _Action.PERMANENT_REDIRECT,
}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def redirects(wanted: Redirect, matched: str) -> Iterator[tuple[list[_Header], _Action]]:
    """Yield redirects of requests whose paths begin with `matched`, each for requests with some headers.

    A default port is not written. Envoy leaves a port in the request's host, however, unless it writes
    another or the host is replaced, so requests whose host has a port get the default port written.
    """
    # Sidecars get requests of the mesh as plain HTTP.
    scheme = wanted.scheme or "http"
    plain = _redirect(wanted, matched)
    if wanted.port == _DEFAULT_PORTS[scheme]:
        if wanted.host is None:
            ported = _redirect(wanted, matched)
            ported.port_redirect = wanted.port
            yield list(_with_port(scheme)), ported
    elif wanted.port is not None:
        plain.port_redirect = wanted.port
    yield [], plain


def _with_port(scheme: str) -> Iterator[_Header]:
    """Yield what fits requests whose host has a port that Envoy would leave in the new location."""
    yield _Header(name=":authority", string_match=full_match(r".*[^\]:]:[0-9]+|\[.*\]:[0-9]+"))
    if scheme != "http":
        # Envoy removes the default port of the scheme before.
        plain = string_pb2.StringMatcher(suffix=":80")
        yield _Header(name=":authority", string_match=plain, invert_match=True)


def _redirect(wanted: Redirect, matched: str) -> _Action:
    """Return a redirect without a port."""
    message = _Action(response_code=_CODES[HTTPStatus(wanted.status)])
    if wanted.scheme is not None:
        message.scheme_redirect = wanted.scheme
    if wanted.host is not None:
        # Envoy drops the port of the request with its host.
        message.host_redirect = wanted.host
    if wanted.path is None:
        return message
    if wanted.path.form is PathForm.FULL:
        message.path_redirect = whole_path(wanted.path)
    elif (change := path_change(wanted.path, matched)).substitution is not None:
        message.regex_rewrite.CopyFrom(change.substitution)
    elif change.prefix is not None:
        message.prefix_rewrite = change.prefix
    return message
