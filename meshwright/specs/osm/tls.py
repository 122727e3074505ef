"""Names of cipher suites and curves supported by all versions of Envoy from 1.36 to 1.40.

Envoy rejects every listener and cluster because of one unknown name. Suites of TLS 1.3 cannot be configured
in Envoy. Suites with pre-shared keys or 3DES are excluded, because they are of no use in a mesh.
"""

from collections.abc import Callable
from typing import Final

from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of

CIPHER_SUITES: Final = frozenset(
    {
        "AES128-GCM-SHA256",
        "AES128-SHA",
        "AES256-GCM-SHA384",
        "AES256-SHA",
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES128-SHA",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-ECDSA-AES256-SHA",
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-SHA",
        "ECDHE-RSA-AES128-SHA256",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-SHA",
        "ECDHE-RSA-CHACHA20-POLY1305",
    }
)
CURVES: Final = frozenset({"P-256", "P-384", "P-521", "X25519", "X25519MLKEM768"})
CURVE_ALIASES: Final = {"prime256v1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}


def cipher_suites(fields: Fields, name: str) -> tuple[str, ...]:
    """Return cipher suites, each once; `[A|B]` has suites of equal preference."""
    expected = (
        f"{one_of(CIPHER_SUITES)} (cipher suites of TLS 1.2), or several with equal preference, such as [A|B]"
    )
    return tuple(dict.fromkeys(_known(fields, name, expected, _are_suites)))


def curves(fields: Fields, name: str) -> tuple[str, ...]:
    """Return elliptic curves in order of preference, each once, by Envoy's names."""
    result = _known(fields, name, one_of(CURVES), lambda text: _curve(text) in CURVES)
    return tuple(dict.fromkeys(map(_curve, result)))


def _known(fields: Fields, name: str, expected: str, is_known: Callable[[str], bool]) -> tuple[str, ...]:
    for path, field in fields.items(name):
        if isinstance(field, str) and field and not is_known(field):
            fields.notes.refuse(Code.WRONG_VALUE, path, expected, field)
    return fields.texts(name, expected, is_known)


def _are_suites(text: str) -> bool:
    equals = text[1:-1].split("|") if text.startswith("[") and text.endswith("]") else [text]
    return CIPHER_SUITES.issuperset(equals)


def _curve(text: str) -> str:
    return CURVE_ALIASES.get(text, text)
