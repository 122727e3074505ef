"""Private keys encrypted at rest: a data key encrypts them, and a passphrase the data key. Values only.

A passphrase is worth something only if it is stretched at a price, and PKCS#8 would take that price for each
key: PBKDF2 at the 2048 rounds that libraries write is none, and at one that is, thousands of service
certificates would cost minutes at each start. So it is paid once, and another passphrase rewrites one file.
"""

import base64
import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from certs.errors import StateError

_SEALED: Final = re.compile(
    rb"-----BEGIN MESHWRIGHT SEALED KEY-----\n([A-Za-z0-9+/=\n]*?)-----END MESHWRIGHT SEALED KEY-----\n?"
)
_PLAIN: Final = re.compile(
    rb"-----BEGIN (?P<kind>(?:RSA |EC |)PRIVATE KEY)-----.*?-----END (?P=kind)-----\n?", re.DOTALL
)
_OF_A_KEY: Final = b"meshwright private key"
_OF_DATA_KEY: Final = b"meshwright data key"
_NONCE: Final = 12
_DATA_KEY: Final = 32
_WIDTH: Final = 64

_MOST_MEMORY: Final = 2**30
_MOST_PASSES: Final = 64


class UnopenedError(StateError):
    """A private key is encrypted, and there is no passphrase, or no data key, to decrypt it with."""


class Seal:
    """Encrypts and decrypts the private keys of a text; what else stands in it is left as it is.

    Without a data key nothing is encrypted. No dataclass, as PrivateKey is none.
    """

    __slots__ = ("_cipher",)

    def __init__(self, data_key: bytes | None) -> None:
        self._cipher = None if data_key is None else AESGCM(data_key)

    @property
    def encrypts(self) -> bool:
        """Say whether it has a data key."""
        return self._cipher is not None

    def closed(self, text: bytes) -> bytes:
        """Return a text (PEM) with its private keys encrypted."""
        cipher = self._cipher
        if cipher is None:
            return text

        def sealed(found: re.Match[bytes]) -> bytes:
            nonce = secrets.token_bytes(_NONCE)
            body = base64.b64encode(nonce + cipher.encrypt(nonce, found.group(), _OF_A_KEY))
            lines = (body[at : at + _WIDTH] for at in range(0, len(body), _WIDTH))
            return b"\n".join(
                (b"-----BEGIN MESHWRIGHT SEALED KEY-----", *lines, b"-----END MESHWRIGHT SEALED KEY-----\n")
            )

        return _PLAIN.sub(sealed, text)

    def opened(self, text: bytes) -> bytes:
        """Return a text with its private keys as they are; those that never were encrypted stay.

        Raises UnopenedError without a data key, ValueError for what is damaged, or is of another one.
        """
        return _SEALED.sub(lambda found: self._plain(found.group(1)), text)

    def _plain(self, body: bytes) -> bytes:
        if self._cipher is None:
            raise UnopenedError("a private key is encrypted, and no passphrase was given")
        content = base64.b64decode(body)
        try:
            return self._cipher.decrypt(content[:_NONCE], content[_NONCE:], _OF_A_KEY)
        except (InvalidTag, ValueError):
            raise ValueError("an encrypted private key is damaged, or of another directory") from None

    def __repr__(self) -> str:
        return "Seal(<hidden>)"


PLAIN: Final = Seal(None)
"""Encrypts nothing."""


def is_sealed(text: bytes) -> bool:
    """Say whether a text has an encrypted key."""
    return _SEALED.search(text) is not None


def private_keys(text: bytes) -> list[bytes]:
    """Return the private keys of a text that are not encrypted, each as its PEM."""
    return [found.group() for found in _PLAIN.finditer(text)]


def without_keys(text: bytes) -> bytes:
    """Return a text without its private keys, encrypted or not."""
    return _PLAIN.sub(b"", _SEALED.sub(b"", text))


def new_data_key() -> bytes:
    """Return a data key that nobody has."""
    return secrets.token_bytes(_DATA_KEY)


@dataclass(frozen=True, slots=True)
class ScryptParameters:
    """How dear it is to try a passphrase (scrypt): 32 MiB and a fifth of a second, as OWASP has it."""

    n: int = 2**15
    r: int = 8
    p: int = 3

    def key(self, passphrase: bytes, salt: bytes) -> bytes:
        """Return what a passphrase comes to."""
        return Scrypt(salt=salt, length=_DATA_KEY, n=self.n, r=self.r, p=self.p).derive(passphrase)

    @property
    def bearable(self) -> bool:
        """Say whether it can be paid: numbers of a damaged file must not take the machine's memory."""
        is_one = self.n > 1 and self.n.bit_count() == 1 and self.r > 0 and self.p > 0
        return is_one and 128 * self.n * self.r <= _MOST_MEMORY and self.p <= _MOST_PASSES


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key, encrypted by a passphrase; what is kept of both."""

    stretching: ScryptParameters
    salt: bytes
    nonce: bytes
    wrapped: bytes = field(repr=False)

    def data_key(self, passphrase: bytes) -> bytes:
        """Return the data key; raise ValueError for another passphrase."""
        key = self.stretching.key(passphrase, self.salt)
        try:
            return AESGCM(key).decrypt(self.nonce, self.wrapped, _OF_DATA_KEY)
        except (InvalidTag, ValueError):
            raise ValueError("the passphrase is another one") from None

    def written(self) -> bytes:
        """Return it as JSON, as `read_wrapped` takes it."""
        how = self.stretching
        document = {"kdf": "scrypt", "n": how.n, "r": how.r, "p": how.p, "cipher": "aes-256-gcm"}
        document |= {"salt": self.salt.hex(), "nonce": self.nonce.hex(), "data_key": self.wrapped.hex()}
        return json.dumps(document, indent=1).encode() + b"\n"


def wrapped(data_key: bytes, passphrase: bytes) -> WrappedKey:
    """Encrypt a data key by a passphrase."""
    how, salt, nonce = ScryptParameters(), secrets.token_bytes(16), secrets.token_bytes(_NONCE)
    sealed = AESGCM(how.key(passphrase, salt)).encrypt(nonce, data_key, _OF_DATA_KEY)
    return WrappedKey(how, salt, nonce, sealed)


def read_wrapped(content: bytes) -> WrappedKey:
    """Read what was written; raise ValueError for anything else."""
    try:
        document: Any = json.loads(content)
        how = ScryptParameters(*(int(document[each]) for each in ("n", "r", "p")))
        parts = [bytes.fromhex(document[each]) for each in ("salt", "nonce", "data_key")]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it lacks {error}, or has it in another form") from error
    if not how.bearable or (document.get("kdf"), document.get("cipher")) != ("scrypt", "aes-256-gcm"):
        raise ValueError("it is of another version, or damaged")
    return WrappedKey(how, *parts)
