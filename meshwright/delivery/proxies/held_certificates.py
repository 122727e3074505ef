"""Which service certificates proxies hold, by what they have acknowledged; never their keys.

What is sent is not what is held: a certificate is renewed in time only if the proxy has taken the new one.
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
"""So many versions are known at once; beyond, they are read anew."""

_BEGIN, _KEY = b"-----BEGIN CERTIFICATE-----", b"PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class HeldCertificate:
    """What a proxy shows to others of the mesh."""

    serial: str
    not_after: datetime


class HeldCertificates:
    """Reads them from the resources that proxies acknowledged: of each resource once, in whatever thread.

    A proxy that came back with what is served now has not been sent it, and has nothing to acknowledge: it
    holds what is `served`.
    """

    def __init__(self, served: Callable[[NodeKey], Snapshot | None]) -> None:
        self._served = served
        self._read: dict[Version, tuple[HeldCertificate | None]] = {}
        self._plain: set[TypeUrl] = set()  # of one type all resources are secret, or none is

    def of(self, proxy: Proxy) -> HeldCertificate | None:
        """Return what a proxy holds; None where it was sent none, or is unknown."""
        for type_url, noted in tuple(proxy.acknowledged.items()):
            if type_url not in self._plain and (found := self._first(self._secrets(noted))) is not None:
                return found
        snapshot = self._served(proxy.node) if proxy.streams else None
        if snapshot is None:
            return None
        kinds = (snapshot.resources(kind).values() for kind in snapshot.types())
        return self._first(each for there in kinds for each in there if each.secret)

    def first_end(self, proxies: Iterable[Proxy]) -> datetime | None:
        """Return when the first of all that these hold ends; None where nobody holds any."""
        held = (self.of(each) for each in proxies)
        return min((each.not_after for each in held if each is not None), default=None)

    def _secrets(self, noted: AcknowledgedVersions) -> Iterator[Resource]:
        """Yield what somebody has acknowledged of a type, the newest of each, if that is secret."""
        for name in dict.fromkeys((*noted.named, *noted.whole)):
            newest = noted.get(name)
            if newest and not newest[0].secret:
                self._plain.add(newest[0].type_url)
                return
            yield from newest[:1]

    def _first(self, resources: Iterable[Resource]) -> HeldCertificate | None:
        for each in resources:
            if (known := self._read.get(each.version)) is None:
                if len(self._read) >= MOST:
                    self._read.clear()
                known = self._read[each.version] = (_certificate(each),)
            if known[0] is not None:
                return known[0]
        return None


def _certificate(resource: Resource) -> HeldCertificate | None:
    """Return the certificate that a resource brings with its key, in whatever message; None for roots.

    PEM stands in protobuf as it is, and in JSON with its line ends escaped.
    """
    body = resource.body.replace(b"\\n", b"\n")
    begin = body.find(_BEGIN)
    if begin < 0 or _KEY not in body:
        return None
    try:
        return HeldCertificate(*serial_and_end(body[begin:]))
    except ValueError:
        return None
