"""Translation of a group's policy to pieces of resources by the driver of the proxies."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from meshwright.delivery.snapshots.rendering import GroupInput, Translate
from meshwright.sidecars.contract.driver import Credentials, Piece, Pieces, SidecarDriver
from meshwright.sidecars.contract.selection import select

_NO_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType({})


class CertificateMissing(Exception):
    """Error for a group of proxies before their service certificate is issued."""


def translation(
    *drivers: SidecarDriver, environment: Mapping[str, str] = _NO_ENVIRONMENT, secrets: bool = True
) -> Translate:
    """Return the function from the input of a group to all pieces, including secrets.

    The driver is selected by `meshwright.sidecars.contract.selection`. The function raises UnknownDriverError
    if the selected driver is not in `drivers`, DuplicateDriverError, CertificateMissing, and the errors of
    the driver. Without `secrets` the function needs no certificate, because the result is only shown and not
    served.
    """
    by_name = {driver.name: driver for driver in drivers}
    ports = {driver.name: driver.proxy_server_port for driver in drivers}

    def translate(group_input: GroupInput) -> tuple[Piece | Pieces, ...]:
        driver = by_name[select(group_input.sidecar, environment, ports, group_input.driver).driver]
        if not secrets:
            return driver.pieces(group_input.policy)
        if group_input.certificate is None:
            raise CertificateMissing(f"a service certificate is missing for {group_input.policy.identity}")
        credentials = Credentials(
            group_input.certificate,
            group_input.policy.trust_domain,
            group_input.trust_bundle,
            group_input.secrets,
            group_input.authorities,
        )
        return (*driver.pieces(group_input.policy), *driver.credentials(credentials))

    return translate
