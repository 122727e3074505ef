"""An Envoy bootstrap from the files that were written for a proxy."""

from pathlib import Path

from agent.certificates import read
from agent.credentials import CredentialsError
from cli.errors import CommandFailed
from cli.options import host_port
from mesh.names import TrustDomain
from sidecars.envoy.bootstrap import AdsProtocol, BootstrapSettings, bootstrap
from sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE


def text(
    credentials: Path, ads: str, admin: str, protocol: str, trust_domain: TrustDomain | None = None
) -> str:
    """Return the bootstrap as JSON; raise CommandFailed, also where the files do not fit together.

    The proxy's name is its certificate's common name. The trust domain is what was told, what stands beside
    the files, or what the CA's certificate says. Others may read them: it is not said who will run Envoy.
    """
    directory = credentials.resolve()
    chain, key, authority = (directory / name for name in (CHAIN_FILE, KEY_FILE, AUTHORITY_FILE))
    if not key.is_file():
        raise CommandFailed(f"{key} is not there: issue a proxy certificate into {credentials} first")
    control_plane, admin_address = host_port("--ads", ads), host_port("--admin", admin)
    try:
        variant = AdsProtocol(protocol)
    except ValueError:
        raise CommandFailed(f"--protocol is {protocol!r}: must be delta or sotw") from None
    try:
        found = read(directory, shared=True, told=trust_domain)
    except CredentialsError as error:
        raise CommandFailed(error) from error
    return bootstrap(
        BootstrapSettings(
            proxy_name=found.name,
            trust_domain=found.trust_domain,
            ads_host=control_plane.host,
            ads_port=control_plane.port,
            certificate_file=chain,
            key_file=key,
            ca_file=authority,
            admin_host=admin_address.host,
            admin_port=admin_address.port,
            protocol=variant,
        )
    )
