"""HTTPRouteGroup and TCPRoute, specs.smi-spec.io v1alpha1 to v1alpha4, and UDPRoute, which is refused.

v1alpha1 and v1alpha2 have `matches` beside metadata, v1alpha3 and v1alpha4 in `spec`. Only the TCPRoute of
v1alpha4 has ports.
"""

import re

from meshwright.mesh.kinds import UDP_ROUTE
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch, HTTPRouteGroup, PolicyKey, TCPRoute
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.manifest import Manifest

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"})

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def http_route_group(manifest: Manifest) -> HTTPRouteGroup:
    """Read an HTTPRouteGroup; the names of its matches must differ."""
    fields = manifest.top() if manifest.version in ("v1alpha1", "v1alpha2") else manifest.spec()
    sections = fields.sections("matches", required=True)
    fields.close()
    matches = tuple(_match(section) for section in sections)
    if fields.has("matches") and not matches:
        manifest.notes.warn(
            Code.EMPTY,
            fields.at("matches"),
            "is empty, so this HTTPRouteGroup does not match requests; add at least one match",
        )
    for index in duplicates([match.name for match in matches]):
        sections[index].wrong("name", "must differ from the names of the other matches", Code.DUPLICATE)
    return HTTPRouteGroup(PolicyKey(manifest.namespace, manifest.key.name), matches)


def tcp_route(manifest: Manifest) -> TCPRoute:
    """Read a TCPRoute; without ports, the route matches every port."""
    key = PolicyKey(manifest.namespace, manifest.key.name)
    if manifest.version in ("v1alpha1", "v1alpha2"):
        manifest.top().close()
        return TCPRoute(key)
    fields = manifest.spec(required=False)
    if manifest.version == "v1alpha3":
        fields.close()
        return TCPRoute(key)
    matches = fields.section("matches")
    matches.accept("name")
    ports = matches.ports("ports")
    matches.close()
    fields.close()
    return TCPRoute(key, ports)


def udp_route(manifest: Manifest) -> None:
    """Refuse a UDPRoute with its own problem code, because Meshwright does not support UDP."""
    manifest.notes.refuse(
        Code.UDP_ROUTE,
        "kind",
        "must be HTTPRouteGroup or TCPRoute; sidecars do not carry UDP",
        UDP_ROUTE.name,
    )


def _match(fields: Fields) -> HTTPMatch:
    name = fields.required_text(
        "name", "must be the name of this match, by which a TrafficTarget refers to it"
    )
    match = HTTPMatch(name, _path(fields), _methods(fields), _headers(fields))
    fields.close()
    return match


def _path(fields: Fields) -> str | None:
    """Return the regular expression for a path; an empty one matches any path, as in Open Service Mesh."""
    path = fields.text("pathRegex")
    if path == "":
        fields.notes.inform(
            Code.EMPTY_PATH,
            fields.at("pathRegex"),
            "is empty, so the match accepts any path; to make this visible, write .*",
        )
    if not path:
        return None
    fault = fields.notes.expressions.fault(path)
    if fault:
        fields.wrong("pathRegex", fault, Code.BAD_REGEX)
    return path


def _methods(fields: Fields) -> tuple[str, ...]:
    result = set()
    for path, item in fields.items("methods"):
        if isinstance(item, str) and (item in METHODS or item == "*"):
            result.add(item)
        else:
            fields.notes.refuse(Code.WRONG_VALUE, path, one_of((*METHODS, "*")), item)
    # No method at all is the value for every method; `*` makes the others in the list redundant.
    return () if "*" in result else tuple(sorted(result))


def _headers(fields: Fields) -> tuple[HeaderMatch, ...]:
    """Return headers from a mapping or a list of mappings; all of them must match (AND)."""
    if isinstance(fields.raw("headers"), list | tuple):
        sections = fields.sections("headers")
    else:
        sections = (fields.section("headers"),)
    for section in sections:
        _refuse_nulls(section)
    header_matches = {
        _header(section, name, regex) for section in sections for name, regex in section.all_pairs()
    }
    return tuple(sorted(header_matches, key=lambda header: (header.name, header.regex)))


def _refuse_nulls(fields: Fields) -> None:
    """Refuse a header without an expression, because the match would allow more than intended without it."""
    for name in fields.names():
        if not fields.has(name):
            fields.wrong(name, "must be a regular expression (RE2) for the header's value", Code.WRONG_TYPE)


def _header(fields: Fields, name: str, regex: str) -> HeaderMatch:
    fault = fields.notes.expressions.fault(regex)
    if fault:
        fields.wrong(name, fault, Code.BAD_REGEX)
    if not _HEADER_NAME.fullmatch(name):
        fields.wrong(name, "must have the name of a header as key, for example user-agent")
    return HeaderMatch(name.lower(), regex)
