"""Identifiers that are "just strings" and must not be mistaken for each other."""

import re
from dataclasses import dataclass
from typing import Final, NewType

Namespace = NewType("Namespace", str)
ServiceName = NewType("ServiceName", str)
ServiceAccountName = NewType("ServiceAccountName", str)
ProxyUuid = NewType("ProxyUuid", str)
TrustDomain = NewType("TrustDomain", str)
SpiffeId = NewType("SpiffeId", str)
IpAddress = NewType("IpAddress", str)
Port = NewType("Port", int)
InterfaceName = NewType("InterfaceName", str)


@dataclass(frozen=True, slots=True, order=True)
class SecretName:
    """A Secret by its place: of Kubernetes, or a folder of that name."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LONGEST_NAME: Final = 253
INTERFACE: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,14}|[A-Za-z0-9_.-]{0,13}[+])"
INTERFACE_RULE: Final = (
    "must be the name of a network interface other than lo, such as eth1, of 15 characters at most; "
    "net+ is all whose names begin with net"
)

_DNS_LABEL = re.compile(DNS_LABEL)
_DNS_SUBDOMAIN = re.compile(DNS_SUBDOMAIN)
_INTERFACE = re.compile(INTERFACE)


def is_dns_label(text: str) -> bool:
    """Say whether `text` is a DNS label as RFC 1123 has it: 1 to 63 of a-z, 0-9 and inner hyphens."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Say whether `text` is labels joined by dots, at most 253 characters, as Kubernetes names are."""
    return len(text) <= LONGEST_NAME and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_interface(text: str) -> bool:
    """Say whether `text` names a network interface besides loopback, or by a plus at its end all so begun."""
    return _INTERFACE.fullmatch(text) is not None and text not in ("lo", "lo+")
