"""Parsers of setting values from file, variable or flag, and their form on pages."""

import re
from collections.abc import Mapping
from ipaddress import IPv6Network, ip_address
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_settings import NoDecode

from certs.issuers.reference import IssuerReference
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.injection.configuration.place import ConfigMapKey
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import is_dns_label, is_dns_subdomain
from meshwright.providers.dns.nameserver import Nameserver
from meshwright.providers.kubernetes.scope import selector

_MAPPED: Final = 96
"""Number of bits before the IPv4 address in a mapped IPv6 address."""


_UPGRADE: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}(/[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64})?")
"""A protocol of the header Upgrade, with or without a version, for example `TLS/1.2` (RFC 9110, 7.8)."""


def _address(value: object) -> HostPort:
    return value if isinstance(value, HostPort) else HostPort.parse(str(value))


def _maybe_address(value: object) -> HostPort | None:
    return None if _none_if_empty(value) is None else _address(value)


def _place(value: object) -> Place | None:
    if _none_if_empty(value) is None:
        return None
    return value if isinstance(value, Place) else Place.parse(str(value))


def _config_map(value: object) -> ConfigMapKey | None:
    if _none_if_empty(value) is None:
        return None
    return value if isinstance(value, ConfigMapKey) else ConfigMapKey.parse(str(value))


def _as_text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _addresses(value: object) -> object:
    """Parse addresses by driver name: a mapping, or text such as `document=127.0.0.1:15129,other=...`."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError("must be NAME=HOST:PORT, for example document=127.0.0.1:15129")
        value = {name.strip(): address.strip() for name, _, address in pairs}
    return {name: _address(item) for name, item in value.items()} if isinstance(value, dict) else value


def _providers(value: object) -> object:
    """Parse providers by name with options: mappings, or text such as `mine:file=a,seconds=5;other`."""
    if isinstance(value, dict):
        return {name: _as_text(options) for name, options in value.items()}
    if not isinstance(value, str):
        return value
    result: dict[str, dict[str, str]] = {}
    for part in filter(None, map(str.strip, value.split(";"))):
        name, _, message = part.partition(":")
        pairs = [item.partition("=") for item in message.split(",") if item.strip()]
        if not name.strip() or not all(option.strip() and equals for option, equals, _ in pairs):
            raise ValueError("must be NAME or NAME:OPTION=VALUE,..., such as mine:url=http://10.0.0.5/hosts")
        if name.strip() in result:
            raise ValueError(f"must name each provider once; {name.strip()} is named twice")
        result[name.strip()] = {option.strip(): item.strip() for option, _, item in pairs}
    return result


def _withheld(value: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
    """Return providers for pages and logs with all options redacted, because any may be a secret."""
    return {name: dict.fromkeys(options, "[redacted]") for name, options in value.items()}


def _as_text(options: object) -> object:
    """Return options as a provider gets them: numbers as text, and missing options as an empty mapping."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        return options
    return {
        name: str(option) if isinstance(option, int | float) else option for name, option in options.items()
    }


def _domain(value: object) -> str:
    text = str(value)
    if not is_dns_subdomain(text):
        raise ValueError("must be a DNS name in lower case, for example cluster.local")
    return text


def _room_for_ipv4(value: IPv6Network) -> IPv6Network:
    if value.prefixlen > _MAPPED:
        raise ValueError("must leave 32 bits for IPv4 addresses, for example 2001:2::/96")
    return value


def _hosts(value: object) -> object:
    return (
        tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
    )


def _peer_host(value: str) -> str:
    if not value or is_dns_subdomain(value):
        return value
    try:
        return str(ip_address(value.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise ValueError("must be a host name or an IP address, for example 10.0.0.7") from None


def _namespaces(value: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [item for item in value if not is_dns_label(item)]:
        raise ValueError(f"must be names of namespaces, but {wrong[0]!r} is not one")
    return tuple(sorted(set(value)))


def _selector(value: str) -> str:
    selector(value)  # raises ValueError
    return value


def _upgrades(value: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [item for item in value if not _UPGRADE.fullmatch(item)]:
        raise ValueError(
            f"must be values of the Upgrade header, for example websocket; {wrong[0]!r} is not one"
        )
    return tuple(sorted({item.lower() for item in value}))


def _proofs(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("must name at least one kind of proof, for example join-token")
    return tuple(dict.fromkeys(value))


def _nameservers(value: object) -> object:
    texts = _hosts(value)
    if not isinstance(texts, tuple | list):
        return texts
    return tuple(
        server if isinstance(server, Nameserver) else Nameserver.parse(str(server)) for server in texts
    )


def _vault_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if value and (not good or "@" in value or "?" in value or "#" in value):
        raise ValueError("must be a URL without user or query, for example https://vault.example:8200")
    return value.rstrip("/")


def _vault_namespace(value: str) -> str:
    if not (value.isascii() and value.isprintable()):  # it goes out in a header
        raise ValueError("must be the path of a namespace, for example team/mesh, without line breaks")
    return value


def _issuer(value: object) -> IssuerReference | None:
    if _none_if_empty(value) is None:
        return None
    return value if isinstance(value, IssuerReference) else IssuerReference.parse(str(value))


def _namespace(value: str) -> str:
    if value and not is_dns_label(value):
        raise ValueError("must be the name of a namespace: 1 to 63 of a-z, 0-9 and inner hyphens")
    return value


def _name(value: str) -> str:
    if value and not is_dns_subdomain(value):
        raise ValueError("must be the name of an object (a-z, 0-9, hyphens and dots), or empty")
    return value


def _revision(value: str) -> str:
    if value and not is_dns_label(value):
        raise ValueError("must be 1 to 63 of a-z, 0-9 and inner hyphens, or empty")
    return value


def _none_if_empty(value: object) -> object:
    """Return a path, or `None` for an empty text, as in an empty environment variable."""
    return None if value == "" else value


# NoDecode: in the environment these are plain text, not JSON.
Listening = Annotated[HostPort, NoDecode, BeforeValidator(_address), PlainSerializer(str)]
MaybeListening = Annotated[
    HostPort | None, NoDecode, BeforeValidator(_maybe_address), PlainSerializer(_as_text_or_none)
]
WebhookPlace = Annotated[Place | None, NoDecode, BeforeValidator(_place), PlainSerializer(_as_text_or_none)]
MaybeConfigMap = Annotated[
    ConfigMapKey | None, NoDecode, BeforeValidator(_config_map), PlainSerializer(_as_text_or_none)
]
Addresses = Mapping[str, Annotated[HostPort, PlainSerializer(str)]]
Listenings = Annotated[Addresses, NoDecode, BeforeValidator(_addresses)]
Options = Mapping[str, str]
Providers = Annotated[
    Mapping[str, Options],
    NoDecode,
    BeforeValidator(_providers),
    PlainSerializer(_withheld),
    Field(repr=False),
]
Hosts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts)]
PeerHost = Annotated[str, AfterValidator(_peer_host)]
Selector = Annotated[str, AfterValidator(_selector)]
Namespaces = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts), AfterValidator(_namespaces)]
Proofs = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts), AfterValidator(_proofs)]
Upgrades = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_hosts), AfterValidator(_upgrades)]
Nameservers = Annotated[
    tuple[Annotated[Nameserver, PlainSerializer(str)], ...], NoDecode, BeforeValidator(_nameservers)
]
WithRoomForIpv4 = Annotated[IPv6Network, AfterValidator(_room_for_ipv4)]
Domain = Annotated[str, BeforeValidator(_domain)]
MaybePath = Annotated[Path | None, BeforeValidator(_none_if_empty)]
Seconds = Annotated[float, Field(gt=0, le=86400)]
VaultNamespace = Annotated[str, AfterValidator(_vault_namespace)]
VaultUrl = Annotated[str, AfterValidator(_vault_url)]
MaybeIssuer = Annotated[
    IssuerReference | None, NoDecode, BeforeValidator(_issuer), PlainSerializer(_as_text_or_none)
]
OneNamespace = Annotated[str, AfterValidator(_namespace)]
MaybeName = Annotated[str, AfterValidator(_name)]
MaybeRevision = Annotated[str, AfterValidator(_revision)]
