"""Redirects to a location for which the same rule redirects again."""

from collections.abc import Iterable
from typing import Final

from catalog.store.view import View
from meshwright.mesh.gateway.filters import NewPath, PathForm, Redirect
from meshwright.mesh.gateway.gateways import Listener, ListenerProtocol
from meshwright.mesh.gateway.hostnames import covers
from meshwright.mesh.matching import Exact, GrpcMethod, Prefix, Regex, RequestMatch
from meshwright.mesh.service import ServiceKey, ServicePort

_PORTS: Final = {"http": 80, "https": 443}


def leads_to_itself(
    view: View, key: ServiceKey, port: ServicePort, match: RequestMatch, redirect: Redirect
) -> bool:
    """Return whether the new location of a request for a Service's port fits the same match again."""
    if redirect.scheme not in (None, "http") or not _is_called(view, key, redirect.host):
        return False
    number = redirect.port or (80 if redirect.scheme == "http" else port.port)
    return number == port.port and _fits_again(match.path, redirect.path)


def leads_to_same_listener(
    listener: Listener, names: Iterable[str], match: RequestMatch, redirect: Redirect
) -> bool:
    """Return whether the new location of a request at a listener fits the same match there again.

    `names` are the host names that the listener serves by the route; a redirect keeps the host by default.
    """
    own = "https" if listener.protocol == ListenerProtocol.HTTPS else "http"
    number = redirect.port or (listener.port if redirect.scheme is None else _PORTS.get(redirect.scheme))
    return (
        redirect.scheme in (None, own)
        and number == listener.port
        and (redirect.host is None or any(covers(name, redirect.host) for name in names))
        and _fits_again(match.path, redirect.path)
    )


def _is_called(view: View, key: ServiceKey, host: str | None) -> bool:
    """Return whether a host names the Service, or is the host of the request."""
    return host is None or host in (key.name, *key.host_names(view.settings.cluster_domain))


def _fits_again(path: Exact | Prefix | Regex | GrpcMethod | None, new: NewPath | None) -> bool:
    if new is None:
        return True
    match path, new.form:
        case None, _:
            return True
        case Exact(text), PathForm.FULL:
            return text == (new.path or "/")
        case Prefix(prefix), _:
            return _begins_with(new.path or "/", prefix)
        case _:
            # The text of an expression does not say which paths it fits.
            return False


def _begins_with(path: str, prefix: str) -> bool:
    stem = prefix.rstrip("/")
    return path.rstrip("/") == stem or path.startswith(f"{stem}/")
