"""ConfigMaps with CA certificates for gateways.

A reading has no problems: the policy or gateway that names a bad ConfigMap says what is wrong. A ConfigMap
without the entry `ca.crt` is not an object of the mesh, whatever it has else.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.manifest import Manifest
from meshwright.tls.pem import as_pem, certificates_in

CA_ENTRY: Final = "ca.crt"
"""Entry of a ConfigMap with CA certificates; the others are not read."""
_PLACES: Final = ("data", "binaryData")


def has_ca(document: Mapping[str, object]) -> bool:
    """Return whether the document of a ConfigMap has an entry for CA certificates, with any content."""
    return any(_get(document.get(place)) is not None for place in _PLACES)


def ca_bundle(manifest: Manifest) -> CaBundle:
    """Read a ConfigMap with CA certificates."""
    key, body = PolicyKey(manifest.namespace, manifest.key.name), manifest.top()
    plain, encoded = (body.raw(place) for place in _PLACES)
    try:
        written = _entry(_get(plain), _get(encoded))
        # Each certificate once, because a store of certificates may refuse repetitions.
        certificates = dict.fromkeys(certificates_in(written))
    except ValueError as error:
        return CaBundle(key, fault=f"data.{CA_ENTRY} {error}")
    return CaBundle(key, as_pem(certificates).decode())


def _entry(plain: object, encoded: object) -> bytes:
    """Return the entry of `data`, or else of `binaryData`. Raises ValueError, without content."""
    match plain, encoded:
        case str() as text, _:
            result = text.encode()
        case None, str() as text:
            try:
                result = base64.b64decode("".join(text.split()), validate=True)
            except binascii.Error:
                raise ValueError("is not base64") from None
        case _:
            raise ValueError("is not text")
    if not result.strip():
        raise ValueError("is empty")
    return result


def _get(entries: object) -> object:
    return entries.get(CA_ENTRY) if isinstance(entries, Mapping) else None
