"""Profile of our certificates: subjects, alternative names and usages of each kind."""

import ipaddress
import re
import warnings
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from certs.contract import Names, Usage

PURPOSES: Final[dict[Usage, list[ObjectIdentifier]]] = {
    Usage.SERVICE: [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
    Usage.PROXY: [ExtendedKeyUsageOID.CLIENT_AUTH],
    Usage.SERVER: [ExtendedKeyUsageOID.SERVER_AUTH],
    Usage.GATEWAY: [ExtendedKeyUsageOID.CLIENT_AUTH],
    Usage.REPLICA: [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
}
"""The extended key usage of each kind of certificate."""

_WARNED: Final = "Attribute's length must be"
_ANY_LENGTH: Final = ("ignore", re.compile(_WARNED, re.IGNORECASE), UserWarning, None, 0)
"""The warnings filter for long names, in the form stored by Python."""


def subject(common_name: str) -> x509.Name:
    """Return a subject with one common name of any length.

    X.520 limits common names to 64 characters. `<uuid>.<service>.<namespace>` is often longer, and TLS stacks
    accept long names, so the library's validation is turned off.
    """
    _allow_any_length()
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name, _validate=False)])


def common_name(certificate: x509.Certificate) -> str:
    """Return a certificate's common name of any length; empty unless there is exactly one."""
    _allow_any_length()
    attributes = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(attributes[0].value) if len(attributes) == 1 else ""


def _allow_any_length() -> None:
    """Stop the library's warnings about common names longer than 64 characters (X.520).

    The filter stays for the whole process: filters are global, and restoring them could undo a change of
    another thread. The filter is put first again after others were added in front.
    """
    if tuple(warnings.filters[:1]) != (_ANY_LENGTH,):
        warnings.filterwarnings("ignore", _WARNED, UserWarning)


def alternative_names(names: Names) -> x509.SubjectAlternativeName | None:
    """Return the extension for these names (URIs, then DNS names, then addresses), or None without any."""
    general: list[x509.GeneralName] = [
        *map(x509.UniformResourceIdentifier, names.uris),
        *map(x509.DNSName, names.dns_names),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in names.ip_addresses),
    ]
    return x509.SubjectAlternativeName(general) if general else None


def key_usage(*, authority: bool) -> x509.KeyUsage:
    """Return the key usage of a CA (signs certificates and CRLs) or of a leaf (signs handshakes)."""
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
