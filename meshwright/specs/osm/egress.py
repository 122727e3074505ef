"""OSM's Egress, policy.openservicemesh.io v1alpha1: destinations outside the mesh, and their clients.

Fields and names are OSM's. OSM ignores unusable values, for example an invalid IP range or a host with a
port. Here such a value is refused with an error, because otherwise the object would allow less than it
states.
"""

from typing import Final

from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, UPSTREAM_TRAFFIC_SETTING
from meshwright.mesh.names import is_dns_subdomain
from meshwright.mesh.policies.egress import Egress, EgressPort, EgressProtocol, is_wildcard
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.manifest import Manifest
from meshwright.specs.quotes import never
from meshwright.specs.values.references import (
    NETWORK_RULE,
    account,
    object_name,
    parse_address,
    parse_network,
)

HOST_RULE: Final = (
    "must be a host name without a port, for example httpbin.org, an IP address, or a wildcard, for "
    "example *.example.com"
)
MOST_PLACES: Final = 100_000
"""Maximum destinations of one Egress: ports times hosts and ranges.

Every proxy of its sources gets all of them.
"""

_PROTOCOLS: Final = tuple(EgressProtocol)
MATCHES: Final = {item.name: item for item in (HTTP_ROUTE_GROUP, UPSTREAM_TRAFFIC_SETTING)}


def egress(manifest: Manifest) -> Egress:
    """Read an Egress.

    Sources may be of any namespace, as in OSM; other references are within the namespace of the object.
    """
    spec = manifest.spec()
    sources = {account(section, manifest.namespace) for section in spec.sections("sources")}
    networks = _networks(spec)
    ports = {_port(section) for section in spec.sections("ports")}
    groups, limits = _matches(spec)
    result = Egress(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        sources=tuple(sorted(sources)),
        ports=tuple(sorted(ports)),
        hosts=tuple(sorted(set(_hosts(spec)))),
        networks=networks,
        route_groups=groups,
        limits=limits,
    )
    spec.close()
    _bound(spec, result)
    if not manifest.notes.refused:
        _warn_of_incomplete_parts(spec, result)
    return result


def _bound(spec: Fields, result: Egress) -> None:
    """Refuse an Egress with too many destinations (ports times hosts and ranges) for one proxy."""
    # Every proxy of the sources receives every destination, so the product is bounded.
    places = len(result.ports) * (len(result.hosts) + len(result.networks))
    if places > MOST_PLACES:
        expected = (
            f"one Egress may have at most {MOST_PLACES} destinations (ports times hosts and "
            f"ipAddresses), this one has {places}; remove ports, or split it into several Egresses"
        )
        spec.notes.refuse(Code.WRONG_VALUE, spec.at("ports"), expected)


def _warn_of_incomplete_parts(spec: Fields, result: Egress) -> None:
    """Warn of each part of an Egress that allows no traffic, because another part is missing."""
    for name, given in (("sources", result.sources), ("ports", result.ports)):
        if not given:
            spec.notes.warn(
                Code.EMPTY,
                spec.at(name),
                "is empty, so this Egress does not allow traffic; add at least one entry",
            )
    over_http = any(port.protocol is EgressProtocol.HTTP for port in result.ports)
    if result.route_groups and result.ports and not over_http:
        expected = (
            "matches apply only to HTTP requests, and this Egress has only ports of other "
            "protocols; add a port with protocol http, or remove matches"
        )
        spec.notes.warn(Code.NOT_ENFORCED, spec.at("matches"), expected)
    if result.networks or not over_http:
        return
    if not result.hosts:
        expected = (
            "hosts and ipAddresses are both empty, so this Egress does not allow HTTP requests; add a host "
            "or an IP range"
        )
        spec.notes.warn(Code.EMPTY, spec.at("hosts"), expected)
    for path, host in spec.items("hosts"):
        if isinstance(host, str) and is_wildcard(host):
            expected = (
                "a wildcard does not have an address in DNS, so HTTP requests for these hosts are allowed "
                "only to the ranges in ipAddresses; add ipAddresses"
            )
            spec.notes.warn(Code.NOT_ENFORCED, path, expected, host)


def _hosts(spec: Fields) -> list[str]:
    result = []
    for path, item in spec.items("hosts"):
        host = item.lower() if isinstance(item, str) else ""
        # An IPv4 address has the form of a DNS name, so only IPv6 addresses need the parser.
        address = parse_address(host) if ":" in host else None
        if address is not None or is_dns_subdomain(host.removeprefix("*.")):
            result.append(address or host)
        else:
            spec.notes.refuse(Code.WRONG_VALUE, path, HOST_RULE, item)
    return result


def _networks(spec: Fields) -> tuple[str, ...]:
    result = set()
    for path, item in spec.items("ipAddresses"):
        network = parse_network(item)
        if network is None:
            spec.notes.refuse(Code.WRONG_VALUE, path, NETWORK_RULE, item)
        else:
            result.add(network)
    # Python cannot compare a range of IPv4 with a range of IPv6.
    ordered = sorted(result, key=lambda item: (item.version, int(item.network_address), item.prefixlen))
    return tuple(map(str, ordered))


def _port(fields: Fields) -> EgressPort:
    number = fields.required_port("number")
    text = fields.required_text("protocol", one_of(_PROTOCOLS), never).lower()
    fields.close()
    if text and text not in _PROTOCOLS:
        fields.wrong("protocol", one_of(_PROTOCOLS))
    return EgressPort(number, EgressProtocol(text) if text in _PROTOCOLS else EgressProtocol.HTTP)


def _matches(spec: Fields) -> tuple[tuple[str, ...], str | None]:
    """Return the HTTPRouteGroups for requests, and the name of the setting with limits.

    A version in apiGroup is accepted, as in OSM, and ignored.
    """
    groups, settings = set[str](), list[tuple[Fields, str]]()
    for section in spec.sections("matches"):
        kind = section.required_text("kind", one_of(tuple(MATCHES)), never)
        group = section.text("apiGroup")
        name = object_name(section, "name")
        section.close()
        if kind and kind not in MATCHES:
            section.wrong("kind", one_of(tuple(MATCHES)))
        elif kind and group is not None and group.partition("/")[0] != (wanted := MATCHES[kind].group):
            section.wrong("apiGroup", f"must be {wanted}, the API group of {kind}, with or without a version")
        if kind == UPSTREAM_TRAFFIC_SETTING.name:
            settings.append((section, name))
        else:
            groups.add(name)
    for section, _ in settings[1:]:
        section.wrong(
            "kind", f"may be {UPSTREAM_TRAFFIC_SETTING.name} in only one entry of matches", Code.DUPLICATE
        )
    return tuple(sorted(groups)), next((name for _, name in settings), None)
