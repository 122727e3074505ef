"""What a group needs, as pieces of resources: the step from the mesh's words to those of its driver."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from delivery.snapshots.serving import Need, Translate
from sidecars.contract.driver import Credentials, Piece, SidecarDriver
from sidecars.selection import select

_NO_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({})


class CertificateMissing(Exception):
    """A group cannot be served before its identity has a certificate."""


def translation(*drivers: SidecarDriver, environment: Mapping[str, str] = _NO_ENVIRONMENT) -> Translate:
    """Return the function from a group's need to every piece of it, those with secrets among them.

    The group's driver is chosen as `sidecars.selection` says. The function raises UnknownDriverError where
    that is none of `drivers`, CertificateMissing, and whatever the driver raises.
    """
    by_name = {driver.name: driver for driver in drivers}
    ports = {driver.name: driver.proxy_server_port for driver in drivers}

    def translate(need: Need) -> tuple[Piece, ...]:
        driver = by_name[select(need.sidecar, environment, ports, need.driver).driver]
        if need.certificate is None:
            raise CertificateMissing(f"there is no service certificate for {need.policy.identity}")
        credentials = Credentials(need.certificate, need.policy.trust_domain, need.trust_bundle)
        return (*driver.pieces(need.policy), *driver.credentials(credentials))

    return translate
