"""Service certificates held by proxies, read from acknowledged secrets.

Keys are never read.

A certificate without an ACK does not count: a renewal is complete when the proxy has accepted it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from certs.keys.leaf import serial_and_end
from meshwright.delivery.proxies.proxy import Proxy
from meshwright.delivery.quarantine.acknowledged_resources import AcknowledgedVersions
from xds.cache import NodeKey
from xds.protocol.resources.resource import Resource, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

MOST: Final = 10_000
"""Maximum number of resource versions with a cached certificate; beyond it the cache is cleared."""

_BEGIN, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class HeldCertificate:
    """Service certificate received by a proxy, and shown to other proxies."""

    serial: str
    not_after: datetime


class HeldCertificates:
    """Reader of certificates in acknowledged resources; reads each resource once, in any thread.

    A proxy reconnecting with the versions in force gets no response to acknowledge. Such a proxy holds the
    `served` snapshot.
    """

    def __init__(self, served: Callable[[NodeKey], Snapshot | None]) -> None:
        self._served = served
        self._read: dict[Version, tuple[HeldCertificate | None]] = {}
        self._plain: set[TypeUrl] = (
            set()
        )  # types without secrets: either all resources of a type are secret, or none

    def certificate(self, proxy: Proxy) -> HeldCertificate | None:
        """Return the certificate held by a proxy; `None` if it was never sent, or is not known."""
        for type_url, noted in tuple(proxy.acknowledged.items()):
            if type_url not in self._plain and (certificate := self._first(self._secrets(noted))) is not None:
                return certificate
        # No ACK is known: the proxy may have reconnected with the versions in force.
        snapshot = self._served(proxy.node) if proxy.streams else None
        if snapshot is None:
            return None
        kinds = (snapshot.resources(kind).values() for kind in snapshot.types())
        return self._first(resource for there in kinds for resource in there if resource.secret)

    def first_end(self, proxies: Iterable[Proxy]) -> datetime | None:
        """Return the earliest expiry of the service certificates held by these proxies, or `None`."""
        held = (self.certificate(proxy) for proxy in proxies)
        return min(
            (certificate.not_after for certificate in held if certificate is not None),
            default=None,
        )

    def _secrets(self, noted: AcknowledgedVersions) -> Iterator[Resource]:
        """Yield the newest acknowledged version of each secret in the record of one resource type."""
        for name in dict.fromkeys((*noted.named, *noted.whole)):
            newest = noted.get(name)
            if newest and not newest[0].secret:
                self._plain.add(newest[0].type_url)
                return
            yield from newest[:1]

    def _first(self, resources: Iterable[Resource]) -> HeldCertificate | None:
        for resource in resources:
            if (known := self._read.get(resource.version)) is None:
                if len(self._read) >= MOST:
                    self._read.clear()
                known = self._read[resource.version] = (_certificate(resource),)
            if known[0] is not None:
                return known[0]
        return None


def _certificate(resource: Resource) -> HeldCertificate | None:
    """Return the certificate in a resource with a certificate and its key; `None` for CA certificates.

    Works for any message: PEM is unchanged in protobuf, and has escaped line ends in JSON.
    """
    body = resource.body.replace(b"\\n", b"\n")
    begin = body.find(_BEGIN)
    if begin < 0 or _KEY not in body:
        return None
    try:
        return HeldCertificate(*serial_and_end(body[begin:]))
    except ValueError:
        return None
