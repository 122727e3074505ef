"""What a group needs, as resources: the step from the mesh's words to the driver's."""

from controller.wave import Need, Translate
from sidecars.driver import SidecarDriver
from sidecars.envoy.secrets import secrets
from xds.resource import Resource


class CertificateMissing(Exception):
    """A group cannot be served before its identity has a certificate."""


def translation(driver: SidecarDriver) -> Translate:
    """Return the function from a group's need to every resource of it, the secrets among them.

    That function raises CertificateMissing, and whatever the driver raises.
    """

    def translate(need: Need) -> tuple[Resource, ...]:
        if need.certificate is None:
            raise CertificateMissing(f"there is no service certificate for {need.policy.identity}")
        return (
            *driver.translate(need.policy),
            *secrets(need.certificate, need.trust_bundle, need.policy.trust_domain),
        )

    return translate
