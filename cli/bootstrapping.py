"""`meshwright bootstrap`: an Envoy bootstrap from the files that were written for a proxy."""

from pathlib import Path
from typing import Final

from certs.errors import PeerRefused
from certs.peer import PeerCertificate, read_peer
from controller.settings import Address
from mesh.identity import ProxyName, ProxyNameError
from mesh.names import TrustDomain
from sidecars.envoy.bootstrap import AdsProtocol, BootstrapSettings, bootstrap

_SPIFFE: Final = "spiffe://"


class BootstrapError(Exception):
    """A bootstrap cannot be made; the message is one sentence."""


def text(credentials: Path, ads: str, admin: str, protocol: str) -> str:
    """Return the bootstrap as JSON; raise BootstrapError.

    The proxy's name is its certificate's common name, the trust domain what the CA's certificate says.
    """
    directory = credentials.resolve()
    chain, key, authority = (directory / name for name in ("proxy.pem", "proxy.key", "ca.pem"))
    if not key.is_file():
        raise BootstrapError(f"{key} is not there: issue a proxy certificate into {credentials} first")
    control_plane, admin_address = _address("--ads", ads), _address("--admin", admin)
    try:
        variant = AdsProtocol(protocol)
    except ValueError:
        raise BootstrapError(f"--protocol is {protocol!r}: must be delta or sotw") from None
    return bootstrap(
        BootstrapSettings(
            proxy_name=_name(chain),
            trust_domain=_trust_domain(authority),
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


def _address(flag: str, value: str) -> Address:
    try:
        return Address.parse(value)
    except ValueError as error:
        raise BootstrapError(f"{flag} is {value!r}: {error}") from error


def _read(path: Path) -> PeerCertificate:
    try:
        return read_peer(path.read_bytes())
    except OSError as error:
        raise BootstrapError(f"cannot read {path}: {error.strerror}") from error
    except PeerRefused as error:
        raise BootstrapError(f"{path} is no certificate in PEM") from error


def _name(chain: Path) -> ProxyName:
    try:
        return ProxyName.parse(_read(chain).common_name)
    except ProxyNameError as error:
        raise BootstrapError(f"{chain} is not a proxy's certificate: {error}") from error


def _trust_domain(authority: Path) -> TrustDomain:
    found = [uri.removeprefix(_SPIFFE) for uri in _read(authority).uri_sans if uri.startswith(_SPIFFE)]
    if len(found) != 1:
        raise BootstrapError(f"{authority} does not name one trust domain (a URI {_SPIFFE}<trust domain>)")
    return TrustDomain(found[0])
