"""What a group needs, as pieces of resources: the step from the mesh's words to those of its driver."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from meshwright.delivery.snapshots.rendering import GroupInput, Translate
from meshwright.sidecars.contract.driver import Credentials, Piece, Pieces, SidecarDriver
from meshwright.sidecars.contract.selection import select

_NO_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({})


class CertificateMissing(Exception):
    """A group cannot be served before its identity has a certificate."""


def translation(
    *drivers: SidecarDriver, environment: Mapping[str, str] = _NO_ENVIRONMENT, secrets: bool = True
) -> Translate:
    """Return the function from a group's need to every piece of it, those with secrets among them.

    The group's driver is chosen as `meshwright.sidecars.contract.selection` says. The function raises
    UnknownDriverError where that is none of `drivers`, DuplicateDriverError, CertificateMissing, and whatever
    the driver raises. Without `secrets` it needs no certificate: there is nobody to be served.
    """
    by_name = {driver.name: driver for driver in drivers}
    ports = {driver.name: driver.proxy_server_port for driver in drivers}

    def translate(group_input: GroupInput) -> tuple[Piece | Pieces, ...]:
        driver = by_name[select(group_input.sidecar, environment, ports, group_input.driver).driver]
        if not secrets:
            return driver.pieces(group_input.policy)
        if group_input.certificate is None:
            raise CertificateMissing(f"there is no service certificate for {group_input.policy.identity}")
        credentials = Credentials(
            group_input.certificate, group_input.policy.trust_domain, group_input.trust_bundle
        )
        return (*driver.pieces(group_input.policy), *driver.credentials(credentials))

    return translate
