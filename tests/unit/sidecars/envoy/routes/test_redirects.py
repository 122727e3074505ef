"""Tests of the ports in the locations of redirects."""

import re

import pytest

from meshwright.mesh.gateway.filters import NewPath, PathForm, Redirect
from meshwright.mesh.names import Port
from meshwright.sidecars.envoy.routes.redirects import redirects
from protos.envoy.config.route.v3 import route_components_pb2


def location(wanted: Redirect, host: str) -> str:
    """Return the location for a request in plain HTTP, as Envoy makes it (`RouteEntryImplBase::newUri`)."""
    action = next(
        action
        for header_matchers, action in redirects(wanted, "/")
        if all(_fits(header_matcher, host) for header_matcher in header_matchers)
    )
    scheme = action.scheme_redirect or "http"
    name, colon, port = host.rpartition(":") if re.search(r":\d+$", host) else (host, "", "")
    leaves_port = scheme != "http" and port == "80"
    shown = action.host_redirect or (name if action.port_redirect or leaves_port else name + colon + port)
    return f"{scheme}://{shown}" + (f":{action.port_redirect}" if action.port_redirect else "")


def _fits(wanted: route_components_pb2.HeaderMatcher, host: str) -> bool:
    assert wanted.name == ":authority"
    match wanted.string_match.WhichOneof("match_pattern"):
        case "safe_regex":
            result = re.fullmatch(wanted.string_match.safe_regex.regex, host) is not None
        case _:
            result = host.endswith(wanted.string_match.suffix)
    return result is not wanted.invert_match


@pytest.mark.parametrize(
    ("wanted", "host", "expected"),
    [
        (Redirect(port=Port(80)), "old", "http://old"),
        (Redirect(port=Port(8080)), "old", "http://old:8080"),
        (Redirect(port=Port(8443)), "old:8080", "http://old:8443"),
        (Redirect("https", port=Port(443)), "old", "https://old"),
        (Redirect("https", port=Port(443)), "old:80", "https://old"),
        (Redirect("https", port=Port(443)), "old:8080", "https://old:443"),
        (Redirect("https", port=Port(443)), "[fd00::1]", "https://[fd00::1]"),
        (Redirect("https", port=Port(443)), "[fd00::1]:8080", "https://[fd00::1]:443"),
        (Redirect("https", port=Port(80)), "old", "https://old:80"),
        (Redirect("https", "new", port=Port(443)), "old:8080", "https://new"),
        (Redirect(None, "new", port=Port(8080)), "old:1", "http://new:8080"),
    ],
)
def test_location_has_the_port_only_where_it_must(wanted: Redirect, host: str, expected: str) -> None:
    """A default port is written only to replace the port of the requested host."""
    assert location(wanted, host) == expected


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_has_its_status(status: int) -> None:
    """Envoy numbers its statuses in another way."""
    ((_, action),) = redirects(Redirect(host="new", port=Port(80), status=status), "/")
    names = {
        301: "MOVED_PERMANENTLY",
        302: "FOUND",
        303: "SEE_OTHER",
        307: "TEMPORARY_REDIRECT",
        308: "PERMANENT_REDIRECT",
    }
    code = route_components_pb2.RedirectAction.RedirectResponseCode
    assert code.Name(action.response_code) == names[status]


def test_new_path_is_whole_or_a_prefix() -> None:
    """The prefix of the requests is replaced, and one that becomes the root needs an expression."""
    whole, prefix, root = (
        next(iter(redirects(Redirect(host="new", path=NewPath(form, path)), "/foo")))[1]
        for form, path in ((PathForm.FULL, "/a"), (PathForm.PREFIX, "/a/"), (PathForm.PREFIX, "/"))
    )
    assert (whole.path_redirect, prefix.prefix_rewrite) == ("/a", "/a")
    assert root.regex_rewrite.substitution == "/"
