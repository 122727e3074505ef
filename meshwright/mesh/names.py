"""Types for names: plain strings, distinguished from each other by the type checker."""

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
    """Namespace and name of a Kubernetes Secret, or of a folder in place of one."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


DNS_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LONGEST_NAME: Final = 253
# Linux limits names to 15 characters (IFNAMSIZ is 16, with the final NUL); `+` is the wildcard of iptables.
INTERFACE: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,14}|[A-Za-z0-9_.-]{0,13}[+])"
INTERFACE_RULE: Final = (
    "must be the name of a network interface other than lo, for example eth1, of 15 characters at most; "
    "net+ is all whose names begin with net"
)

_DNS_LABEL = re.compile(DNS_LABEL)
_DNS_SUBDOMAIN = re.compile(DNS_SUBDOMAIN)
_INTERFACE = re.compile(INTERFACE)


def is_dns_label(text: str) -> bool:
    """Return whether `text` is a DNS label (RFC 1123): 1 to 63 characters of a-z, 0-9 and inner hyphens."""
    return _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Return whether `text` is dot-separated labels of at most 253 characters, like names in Kubernetes."""
    return len(text) <= LONGEST_NAME and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_interface(text: str) -> bool:
    """Return whether `text` names a network interface except loopback; a final plus is a prefix match."""
    return _INTERFACE.fullmatch(text) is not None and text not in ("lo", "lo+")
