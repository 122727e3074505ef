"""Names and addresses in manifests: their syntax and their canonical form."""

import functools
import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, SERVICE_ACCOUNT
from meshwright.mesh.names import (
    IpAddress,
    Namespace,
    Port,
    ServiceAccountName,
    ServiceName,
    is_dns_label,
    is_dns_subdomain,
)
from meshwright.mesh.service import ServiceKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.manifest import LABEL_RULE, NAME_RULE

SERVICE_RULE = (
    "must be the name of a service: NAME.NAMESPACE or NAME.NAMESPACE.svc.CLUSTER-DOMAIN, for example web.shop"
)
RANGE_RULE = "must be a range of IP addresses without host bits, for example 10.0.0.0/8 or fd00::/8"
NETWORK_RULE = "must be a range of IP addresses, for example 192.0.2.0/24, 192.0.2.7/32 or 2001:db8::/32"
ADDRESS_RULE = "must be the IP address of one machine, for example 10.0.0.7 or fd00::7"

HOST_RULE: Final = "must be a DNS name, for example opa.example.com, or an IP address"

_MAPPED: Final = 96
"""Bits before the IPv4 address in an IPv4-mapped IPv6 address."""

_REMEMBERED: Final = 16384
"""Number of cached addresses; all addresses of a slice are read again after every change of one."""

_DNS_NAME: Final = re.compile(
    r"[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?)*"
)
_BROADCAST = ipaddress.IPv4Address("255.255.255.255")


def object_name(fields: Fields, name: str) -> str:
    """Return the name of another object from a required field."""
    value = fields.required_text(name, NAME_RULE, is_dns_subdomain)
    if value and not is_dns_subdomain(value):
        fields.wrong(name, NAME_RULE)
    return value


def namespace_name(fields: Fields, name: str, default: Namespace) -> Namespace:
    """Return a namespace from a field, `default` if absent."""
    value = fields.text(name, expected=LABEL_RULE, fits=is_dns_label) or default
    if not is_dns_label(value):
        fields.wrong(name, LABEL_RULE)
        return default
    return Namespace(value)


def account(fields: Fields, namespace: Namespace) -> ServiceIdentity:
    """Return the ServiceAccount in a section with kind, name and namespace (default: `namespace`)."""
    fields.choice("kind", (SERVICE_ACCOUNT.name,), SERVICE_ACCOUNT.name)
    if not fields.has("kind"):
        fields.required_text("kind", "must be ServiceAccount")
    name = object_name(fields, "name")
    identity = ServiceIdentity(namespace_name(fields, "namespace", namespace), ServiceAccountName(name))
    fields.close()
    return identity


def route_group(fields: Fields) -> str:
    """Return the name of an HTTPRouteGroup in the same namespace; the group may have a version, as in OSM."""
    group = fields.text("apiGroup") or HTTP_ROUTE_GROUP.group
    if group.partition("/")[0] != HTTP_ROUTE_GROUP.group:
        fields.wrong("apiGroup", f"must be {HTTP_ROUTE_GROUP.group}, with or without a version")
    if not fields.has("kind"):
        fields.required_text("kind", one_of((HTTP_ROUTE_GROUP.name,)))
    fields.choice("kind", (HTTP_ROUTE_GROUP.name,), HTTP_ROUTE_GROUP.name)
    return object_name(fields, "name")


def parse_service(text: str, namespace: Namespace) -> ServiceKey | None:
    """Parse `name`, `name.namespace`, `name.namespace.svc` or a longer FQDN; None if invalid."""
    labels = text.split(".")
    if not is_dns_subdomain(text) or not all(is_dns_label(label) for label in labels[:2]):
        return None
    if len(labels) == 1:
        return ServiceKey(namespace, ServiceName(text))
    if len(labels) == 2 or labels[2] == "svc":
        return ServiceKey(Namespace(labels[1]), ServiceName(labels[0]))
    return None


def service(fields: Fields, name: str, namespace: Namespace) -> ServiceKey:
    """Return a service from a required field, in any syntax of `parse_service`."""
    value = fields.required_text(name, SERVICE_RULE, is_dns_subdomain)
    service_key = parse_service(value, namespace) if value else None
    if value and service_key is None:
        fields.wrong(name, SERVICE_RULE)
    return service_key or ServiceKey(namespace, ServiceName(value))


def own_service(fields: Fields, name: str, namespace: Namespace) -> ServiceKey:
    """Return a service from a required field, which must be in the object's own namespace."""
    service_key = service(fields, name, namespace)
    if service_key.namespace != namespace:
        fields.wrong(name, f"must be a service of the object's own namespace {namespace}", Code.NAMESPACE)
    return service_key


@functools.lru_cache(_REMEMBERED)
def parse_address(text: str) -> IpAddress | None:
    """Return an IP address in canonical form; None if invalid or not the address of a single machine.

    An IPv4-mapped IPv6 address (`::ffff:10.0.0.7`) becomes the IPv4 address, because packets have this
    address.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_unspecified or address.is_multicast or address == _BROADCAST or "%" in text:
        return None
    return IpAddress(str(address))


def address(fields: Fields, name: str, default: IpAddress | None = None) -> IpAddress | None:
    """Return an IP address from a field, `default` if absent."""
    value = fields.text(name, expected=ADDRESS_RULE)
    if value is None:
        return default
    ip_address = parse_address(value)
    if ip_address is None:
        fields.wrong(name, ADDRESS_RULE)
    return ip_address or default


def host(fields: Fields, name: str, default: str = "") -> str:
    """Return a DNS name or an IP address from a field, `default` if absent."""
    value = fields.text(name, expected=HOST_RULE) or default
    result = parse_address(value) or parse_dns_name(value)
    if result is None and value:
        fields.wrong(name, HOST_RULE)
    return result or value


@functools.lru_cache(_REMEMBERED)
def parse_dns_name(text: str) -> str | None:
    """Return a DNS name in canonical form, lower case without a final dot; None if invalid.

    For example, `OPA.Example.COM.` becomes `opa.example.com`. IP addresses and their parts are invalid: the
    last label must not be a number.
    """
    name = text.lower().removesuffix(".")
    good = len(name) <= 253 and _DNS_NAME.fullmatch(name) and not name.rpartition(".")[2].isdigit()
    return name if good else None


def addresses(fields: Fields, name: str, texts: Iterable[str]) -> tuple[IpAddress, ...]:
    """Return the IP addresses in the list `texts` of a field; an invalid one refuses the object."""
    result = []
    for text in texts:
        parsed = parse_address(text)
        if parsed is None:
            fields.notes.refuse(Code.WRONG_VALUE, fields.at(name), ADDRESS_RULE, text)
        else:
            result.append(parsed)
    return tuple(result)


def parse_network(text: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return an IP range, None if invalid. Host bits are ignored, as in OSM; the prefix must be a number.

    For example, `10.1.2.3/8` becomes `10.0.0.0/8`.

    An IPv4-mapped range (`::ffff:10.0.0.0/104`) becomes the IPv4 range, because packets have these addresses.
    """
    address, _, prefix = text.partition("/") if isinstance(text, str) else ("", "", "")
    # ip_network() would accept a netmask after the slash. A zone such as %eth0 is valid on one machine only.
    if not (prefix.isascii() and prefix.isdigit()) or "%" in address:
        return None
    try:
        result = ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    except ValueError:
        return None
    mapped = result.network_address.ipv4_mapped if isinstance(result, ipaddress.IPv6Network) else None
    if mapped is not None and result.prefixlen >= _MAPPED:
        return ipaddress.IPv4Network(f"{mapped}/{result.prefixlen - _MAPPED}")
    return result


def ranges(fields: Fields, name: str) -> tuple[str, ...]:
    """Return a list of IP ranges, sorted, each once; a range with host bits refuses the object."""
    result = set()
    for path, item in fields.items(name):
        try:
            network = ipaddress.ip_network(item if isinstance(item, str) and "%" not in item else "")
            # parse_network turns an IPv4-mapped range into an IPv4 range.
            result.add(parse_network(str(network)) or network)
        except ValueError:
            fields.notes.refuse(Code.WRONG_VALUE, path, RANGE_RULE, item)
    return tuple(str(element) for element in sorted(result, key=lambda element: (element.version, element)))


def port_or_digits(fields: Fields, name: str) -> Port | None:
    """Return an optional port, which may also be a text of digits, as in SMI v1alpha1."""
    value = fields.raw(name)
    if isinstance(value, str):
        # The length is bounded, because int() raises for a text of more than 4300 digits.
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= 5 else 0
        if not 1 <= number <= 65535:
            fields.wrong(name, "must be a port number from 1 to 65535")
            return None
        return Port(number)
    return fields.port(name)
