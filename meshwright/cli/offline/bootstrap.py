"""An Envoy bootstrap from the credential files of a proxy."""

import os
from pathlib import Path

from meshwright.agent.certificates import read
from meshwright.agent.credentials import CredentialsError
from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import host_port, server_addresses
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from meshwright.sidecars.layout import (
    ADMIN_PORT,
    ADS_PORT,
    AUTHORITY_FILE,
    CHAIN_FILE,
    KEY_FILE,
    LONGEST_SOCKET,
)


def text(
    credentials: Path, ads: str, admin: str | None, protocol: str, trust_domain: TrustDomain | None = None
) -> str:
    """Return the bootstrap as JSON; raise CommandFailed, also if the files do not match each other.

    The proxy's name is the certificate's common name. The trust domain is `trust_domain`, else the one in the
    file beside the credentials, else the one in the CA certificate. The key may be readable by other users,
    because Envoy's user is unknown here.
    """
    directory = credentials.resolve()
    chain, key, authority = (directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
    if not key.is_file():
        raise CommandFailed(
            f"{key} does not exist: issue a certificate with `meshwright certs issue-proxy --out "
            f"{credentials}`"
        )
    control_planes, admin_address = server_addresses("--ads", ads, ADS_PORT), _admin(admin)
    try:
        variant = AdsProtocol(protocol)
    except ValueError:
        raise CommandFailed(f"--protocol is {protocol!r}: must be delta or sotw") from None
    try:
        result = read(directory, shared=True, configured=trust_domain)
    except CredentialsError as error:
        raise CommandFailed(error) from error
    return bootstrap(
        BootstrapSettings(
            proxy_name=result.name,
            trust_domain=result.trust_domain,
            ads=control_planes,
            certificate_file=chain,
            key_file=key,
            ca_file=authority,
            admin=admin_address,
            protocol=variant,
        )
    )


def _admin(text: str | None) -> HostPort | Path | None:
    """Parse the address of Envoy's admin interface; raise CommandFailed."""
    if text is None or not text.startswith("/"):
        return None if text is None else host_port("--admin", text, ADMIN_PORT)
    if len(os.fsencode(text)) > LONGEST_SOCKET:
        raise CommandFailed(
            f"--admin is {text!r}: the path of a Unix socket must have at most {LONGEST_SOCKET} bytes"
        )
    return Path(text)
