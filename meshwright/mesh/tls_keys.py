"""Cipher suites and curves of TLS 1.2 usable with the key of a certificate.

In TLS 1.2 a cipher suite determines the kind of the server's key, and a certificate with an elliptic-curve
key needs a peer that offers the key's curve. A handshake without a match fails, and every request with it. In
TLS 1.3 neither depends on the key (RFC 8446, section 4.2.3).
"""

import enum
from typing import Final

from meshwright.mesh.config import TlsVersion


class ServiceKeys(enum.Enum):
    """Kind of the private keys of service certificates, as far as TLS distinguishes it."""

    ECDSA_P256 = "ECDSA P-256"
    RSA = "RSA"


_CURVE: Final = "P-256"
_ECDSA: Final = "ECDHE-ECDSA-"
_ECDHE_RSA: Final = "ECDHE-RSA-"
_WITHOUT_ECDSA: Final = {"AES128-SHA256": "AES128-GCM-SHA256"}
"""Ciphers that Envoy supports with RSA keys only, and the nearest ones for ECDSA keys."""


def fitting_suites(suites: tuple[str, ...], keys: ServiceKeys, minimum: TlsVersion) -> tuple[str, ...]:
    """Return cipher suites of which at least one can be used with the keys.

    Suites are returned unchanged if one of them is usable, or if empty (the proxy's defaults). Otherwise the
    same ciphers are appended for the kind of the keys, with forward secrecy: `("AES128-SHA",)` becomes
    `("AES128-SHA", "ECDHE-ECDSA-AES128-SHA")` for ECDSA keys.
    """
    # Envoy (BoringSSL) groups equally preferred suites as `[A|B]`.
    named = [item for entry in suites for item in entry.strip("[]").split("|")]
    if minimum is not TlsVersion.V1_2 or not named or any(_fits(item, keys) for item in named):
        return suites
    return (*suites, *dict.fromkeys(_counterpart(item, keys) for item in named))


def fitting_curves(curves: tuple[str, ...], keys: ServiceKeys, maximum: TlsVersion) -> tuple[str, ...]:
    """Return curves usable with the keys, in order of preference.

    If TLS 1.2 is the newest version, a missing P-256 is appended for ECDSA keys.
    """
    if maximum is not TlsVersion.V1_2 or keys is ServiceKeys.RSA or not curves or _CURVE in curves:
        return curves
    return (*curves, _CURVE)


def _fits(suite: str, keys: ServiceKeys) -> bool:
    return suite.startswith(_ECDSA) == (keys is ServiceKeys.ECDSA_P256)


def _counterpart(suite: str, keys: ServiceKeys) -> str:
    match keys:
        case ServiceKeys.RSA:
            return _ECDHE_RSA + suite.removeprefix(_ECDSA)
        case ServiceKeys.ECDSA_P256:
            cipher = suite.removeprefix(_ECDHE_RSA)
            return _ECDSA + _WITHOUT_ECDSA.get(cipher, cipher)
