"""What a group needs, as pieces of resources: the step from the mesh's words to the driver's."""

from controller.serving import Need, Translate
from sidecars.driver import Piece, SidecarDriver
from sidecars.envoy.secrets import service_certificate, trust_root


class CertificateMissing(Exception):
    """A group cannot be served before its identity has a certificate."""


def translation(driver: SidecarDriver) -> Translate:
    """Return the function from a group's need to every piece of it, the secrets among them.

    That function raises CertificateMissing, and whatever the driver raises.
    """

    def translate(need: Need) -> tuple[Piece, ...]:
        if need.certificate is None:
            raise CertificateMissing(f"there is no service certificate for {need.policy.identity}")
        return (
            *driver.pieces(need.policy),
            Piece(service_certificate, (need.certificate,)),
            Piece(trust_root, (need.policy.trust_domain, need.trust_bundle)),
        )

    return translate
