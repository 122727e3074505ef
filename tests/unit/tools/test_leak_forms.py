"""Test of the search for leaked secrets: each form of a key is found, and other text is not."""

import base64
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.tools.leak_forms import of_key, seen

KEY = ec.derive_private_key(int("5eed" * 16, 16) // 3, ec.SECP256R1())
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
DER = KEY.private_bytes(
    serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)
SECRETS = {"the key": of_key(PEM)}


@pytest.mark.parametrize(
    "planted",
    [
        PEM,
        DER,
        json.dumps({"key": PEM.decode()}).encode(),
        json.dumps(json.dumps({"key": PEM.decode()})).encode(),
        b"<pre>" + PEM.replace(b"\n", b"<br>") + b"</pre>",
        base64.b64encode(DER),
        base64.b64encode(b"x" + DER),
        base64.urlsafe_b64encode(b"xy" + DER),
        DER.hex().encode(),
        DER.hex().upper().encode(),
        DER.hex(":").encode(),
        DER.hex(":").upper().encode(),
        str(KEY.private_numbers().private_value).encode(),
        repr({"key": PEM}).encode(),
        repr(of_key(PEM)).encode(),
        of_key(PEM),
    ],
    ids=[*map(str, range(16))],
)
def test_key_is_found_in_every_form(planted: bytes) -> None:
    """The key is surrounded by other text; a public key alone is no finding."""
    public = KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert seen(b"what: " + planted + b" and more" + public, SECRETS)
    assert seen(b"what: " + public, SECRETS) == []
