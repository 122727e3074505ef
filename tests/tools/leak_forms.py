"""Secrets in every form in which they might leak: PEM, DER, base64, hex, digits.

There is one table of forms, so that each place is searched for all of them.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

_SPACE = re.compile(rb"\s|\\+[nr]|&#10;|<br>")
_CORE = 24
"""So many characters of a base64 text are looked for, in its middle: what stands around changes its ends."""


def of_key(pem: bytes) -> bytes:
    """Return the secret of a private key: its number, which is unchanged in DER."""
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key.private_numbers().private_value.to_bytes(key.key_size // 8, "big")


def of_keys(directory: Path) -> dict[str, bytes]:
    """Return the secrets of all private keys in the files of a directory, by the name of the file."""
    result: dict[str, bytes] = {}
    for path in sorted(item for item in directory.rglob("*") if item.is_file()):
        blocks = re.findall(
            rb"-----BEGIN PRIVATE KEY-----.+?-----END PRIVATE KEY-----\n", path.read_bytes(), re.DOTALL
        )
        result |= {f"{path.name} of {path.parent.name}, {n}": of_key(block) for n, block in enumerate(blocks)}
    return result


def forms(secret: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield every form of a secret by its name; PEM is base64 without its line ends (see `seen`)."""
    yield "as it is", secret
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + secret)
        core = text[4 : len(text) // 4 * 4 - 4][:_CORE]
        yield f"base64, {shift} bytes on", core
        yield f"base64 for URLs, {shift} bytes on", core.translate(bytes.maketrans(b"+/", b"-_"))
    digits = secret.hex()
    yield "hex", digits.encode()
    yield "HEX", digits.upper().encode()
    for case in (digits, digits.upper()):
        yield "hex with colons", ":".join(re.findall("..", case)).encode()
    yield "digits", str(int.from_bytes(secret, "big")).encode()
    yield "bytes as Python shows them", repr(secret)[2:-1].encode()


def seen(place: bytes, secrets: Mapping[str, bytes]) -> list[str]:
    """Return the secrets that occur in a text, each with its form."""
    dense = _SPACE.sub(b"", place)
    return [
        f"{name}: {form}"
        for name, secret in secrets.items()
        for form, pattern in forms(secret)
        if pattern in place or pattern in dense
    ]
