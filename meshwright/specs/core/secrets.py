"""Secrets with certificates for gateways.

A reading has no problems: a Secret that is not for a gateway may have any content, and the listener that
names a bad one says what is wrong. No text of a Secret is quoted.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from meshwright.mesh.gateway.secrets import EdgeCertificate, TlsSecret
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.values.private_key import PrivateKey
from meshwright.specs.manifest import Manifest
from meshwright.tls.matching import require_shown

_TYPE: Final = "kubernetes.io/tls"
CERTIFICATE_ENTRY: Final = "tls.crt"
KEY_ENTRY: Final = "tls.key"
"""Entries of a Secret of this type; the others are not read."""


def tls_secret(manifest: Manifest) -> TlsSecret:
    """Read a Secret; its certificate and key are checked to belong together."""
    body, key = manifest.top(), PolicyKey(manifest.namespace, manifest.key.name)
    written = body.raw("type")
    encoded, plain = body.raw("data"), body.raw("stringData")
    if written != _TYPE:
        return TlsSecret(key, fault=f"its type is not {_TYPE}")
    try:
        chain, private = (_entry(encoded, plain, name) for name in (CERTIFICATE_ENTRY, KEY_ENTRY))
        facts = require_shown(chain, private)
    except ValueError as error:
        return TlsSecret(key, fault=str(error))
    shown = EdgeCertificate(facts.dns_names, facts.not_before, facts.not_after)
    return TlsSecret(key, chain, PrivateKey(private), certificate=shown)


def _entry(encoded: object, plain: object, name: str) -> bytes:
    """Return an entry of `stringData`, or else of `data`. Raises ValueError, without content.

    Kubernetes has the same precedence.
    """
    match _get(plain, name), _get(encoded, name):
        case str() as text, _:
            return text.encode()
        case _, str() as text:
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except binascii.Error:
                raise ValueError(f"data.{name} is not base64") from None
        case _:
            raise ValueError(f"data.{name} is missing")


def _get(entries: object, name: str) -> object:
    return entries.get(name) if isinstance(entries, Mapping) else None
