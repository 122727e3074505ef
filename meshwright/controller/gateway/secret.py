"""Secret with a gateway's certificate: parser and document."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Self

from certs.keys.material import PrivateKey
from certs.keys.pair import Pair, matched_pair
from meshwright.kubernetes.injection.credentials.pod_roots import MANAGED_BY, US
from meshwright.specs.annotations import HOME

TYPE: Final = "kubernetes.io/tls"

_VALIDITY: Final = "meshwright.dev/certificate-validity"
"""The requested validity in seconds. The certificate itself may be shorter, because it ends with its CA."""

_CHAIN: Final = "tls.crt"
_KEY: Final = "tls.key"
_ROOTS: Final = "ca.crt"


@dataclass(frozen=True, slots=True)
class SecretContent:
    """Content of a Secret: key pair (`None` if unusable), CA certificates, and requested validity.

    `home` is the namespace of the Secret's control plane, or empty.
    """

    home: str
    pair: Pair | None
    roots: bytes
    validity: timedelta

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a Secret from the API server."""
        labels = raw["metadata"].get("labels") or {}
        text = str((raw["metadata"].get("annotations") or {}).get(_VALIDITY, ""))
        chain, key, roots = (_decoded(raw, name) for name in (_CHAIN, _KEY, _ROOTS))
        try:
            pair = matched_pair(chain, PrivateKey(key))
        except ValueError:
            pair = None
        # Anyone may edit the annotation; an unreadable value only causes a new certificate.
        seconds = int(text) if text.isdecimal() and len(text) < 12 else 0
        home = str(labels.get(HOME, "")) if labels.get(MANAGED_BY) == US else ""
        return cls(home, pair, roots, timedelta(seconds=seconds))


def document(name: str, pair: Pair, roots: bytes, validity: timedelta, home: str) -> Mapping[str, Any]:
    """Return the Secret for a server-side apply."""
    data = {_CHAIN: pair.chain_pem, _KEY: pair.key.reveal(), _ROOTS: roots}
    return {
        "metadata": {
            "name": name,
            "labels": {MANAGED_BY: US, HOME: home},
            "annotations": {_VALIDITY: str(int(validity.total_seconds()))},
        },
        "type": TYPE,
        "data": {name: base64.b64encode(item).decode("ascii") for name, item in data.items()},
    }


def _decoded(raw: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode((raw.get("data") or {}).get(name) or "")
    except binascii.Error:
        return b""
