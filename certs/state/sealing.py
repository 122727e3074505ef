"""Encryption of private keys at rest: a data key encrypts them, and a passphrase the data key. A pure module.

`Seal` is for files, and `RecordSeal` for records that several servers share.

A passphrase is safe only with an expensive key derivation. Encrypted PKCS#8 would need one derivation for
each key: libraries use PBKDF2 with 2048 rounds, which is too cheap, and an adequate derivation would take
minutes at each start with thousands of service certificates. So the derivation is done once, and a new
passphrase rewrites only one file.
"""

import base64
import hmac
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
_OF_A_RECORD: Final = b"meshwright record "
_OF_PROOFS: Final = b"meshwright proofs of records"
_OF_A_MESH: Final = b"meshwright identity of a mesh"
_NONCE: Final = 12
_DATA_KEY: Final = 32
_WIDTH: Final = 64

_MOST_MEMORY: Final = 2**30
_MOST_PASSES: Final = 64


class UnopenedError(StateError):
    """Error for an encrypted private key without a passphrase, and so without a data key."""


class Seal:
    """Encryption of the private keys in a text; other content is not changed.

    Without a data key the text is unchanged. The class is not a dataclass, because `dataclasses.asdict` would
    copy the key.
    """

    __slots__ = ("_cipher",)

    def __init__(self, data_key: bytes | None) -> None:
        self._cipher = None if data_key is None else AESGCM(data_key)

    @property
    def encrypts(self) -> bool:
        """Return whether there is a data key, so that private keys are encrypted."""
        return self._cipher is not None

    def closed(self, text: bytes) -> bytes:
        """Return a text (PEM) with its private keys encrypted."""
        cipher = self._cipher
        if cipher is None:
            return text

        def sealed(match: re.Match[bytes]) -> bytes:
            # AES-GCM is broken by two texts with the same key and nonce (NIST SP 800-38D, section 8).
            nonce = secrets.token_bytes(_NONCE)
            body = base64.b64encode(nonce + cipher.encrypt(nonce, match.group(), _OF_A_KEY))
            lines = (body[at : at + _WIDTH] for at in range(0, len(body), _WIDTH))
            return b"\n".join(
                (b"-----BEGIN MESHWRIGHT SEALED KEY-----", *lines, b"-----END MESHWRIGHT SEALED KEY-----\n")
            )

        return _PLAIN.sub(sealed, text)

    def opened(self, text: bytes) -> bytes:
        """Return a text with its private keys decrypted; unencrypted keys are kept.

        Raises UnopenedError without a data key, ValueError for a damaged key, or one encrypted with another
        data key.
        """
        return _SEALED.sub(lambda match: self._plain(match.group(1)), text)

    def _plain(self, body: bytes) -> bytes:
        if self._cipher is None:
            raise UnopenedError("a private key is encrypted, but a passphrase is not set")
        content = base64.b64decode(body)
        try:
            return self._cipher.decrypt(content[:_NONCE], content[_NONCE:], _OF_A_KEY)
        except (InvalidTag, ValueError):
            raise ValueError(
                "an encrypted private key is damaged or belongs to another state directory"
            ) from None

    def __repr__(self) -> str:
        return "Seal(<hidden>)"


PLAIN: Final = Seal(None)
"""Seal without encryption."""


class RecordSeal:
    """Encryption of secrets in shared records; each secret can be decrypted in its own record only.

    `key` is the key of the record, for example `services/shop/cart`, and is authenticated with the secret. A
    content that was copied to another record is therefore refused: a service cannot get the key of another.

    Who has the data key can also prove that a public content is of the mesh's own servers. `mesh` identifies
    the data key, and so the mesh, without a hint at the key.
    """

    __slots__ = ("_cipher", "_proof_key", "mesh")

    def __init__(self, data_key: bytes) -> None:
        self._cipher = AESGCM(data_key)
        # Keys of their own, because AES-GCM and HMAC must not share one.
        self._proof_key = hmac.digest(data_key, _OF_PROOFS, "sha256")
        self.mesh: Final = hmac.digest(data_key, _OF_A_MESH, "sha256")[:16].hex()

    def proof(self, content: bytes, key: str) -> str:
        """Return the proof that a content of the record `key` was written with the data key: HMAC."""
        return hmac.digest(self._proof_key, key.encode() + b"\0" + content, "sha256").hex()

    def proves(self, proof: str, content: bytes, key: str) -> bool:
        """Return whether a proof is the one of this content and record."""
        return hmac.compare_digest(proof.encode(), self.proof(content, key).encode())

    def closed(self, secret: bytes, key: str) -> str:
        """Return a secret encrypted for the record `key`, as base64."""
        nonce = secrets.token_bytes(_NONCE)
        return base64.b64encode(
            nonce + self._cipher.encrypt(nonce, secret, _OF_A_RECORD + key.encode())
        ).decode("ascii")

    def opened(self, text: str, key: str) -> bytes:
        """Return the secret in a text of `closed`.

        Raises ValueError for a damaged text, and one of another record or with another data key.
        """
        try:
            content = base64.b64decode(text, validate=True)
            return self._cipher.decrypt(content[:_NONCE], content[_NONCE:], _OF_A_RECORD + key.encode())
        except (InvalidTag, ValueError):
            raise ValueError(
                f"the encrypted part is damaged, copied from another record than {key}, or encrypted with "
                "another data key"
            ) from None

    def __repr__(self) -> str:
        return "RecordSeal(<hidden>)"


def is_sealed(text: bytes) -> bool:
    """Return whether a text contains an encrypted key."""
    return _SEALED.search(text) is not None


def private_keys(text: bytes) -> list[bytes]:
    """Return the unencrypted private keys in a text, each as PEM."""
    return [match.group() for match in _PLAIN.finditer(text)]


def without_keys(text: bytes) -> bytes:
    """Return a text without its private keys, encrypted or not."""
    return _PLAIN.sub(b"", _SEALED.sub(b"", text))


def new_data_key() -> bytes:
    """Return a new random data key."""
    return secrets.token_bytes(_DATA_KEY)


@dataclass(frozen=True, slots=True)
class ScryptParameters:
    """Cost of one passphrase (scrypt): 32 MiB and 0.2 s, parameters as OWASP recommends."""

    n: int = 2**15
    r: int = 8
    p: int = 3

    def key(self, passphrase: bytes, salt: bytes) -> bytes:
        """Return the key derived from a passphrase."""
        return Scrypt(salt=salt, length=_DATA_KEY, n=self.n, r=self.r, p=self.p).derive(passphrase)

    @property
    def bearable(self) -> bool:
        """Return whether the cost is acceptable: a damaged file must not make us exhaust the memory."""
        is_one = self.n > 1 and self.n.bit_count() == 1 and self.r > 0 and self.p > 0
        return is_one and 128 * self.n * self.r <= _MOST_MEMORY and self.p <= _MOST_PASSES


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A data key encrypted with a passphrase, with the parameters to decrypt it."""

    stretching: ScryptParameters
    salt: bytes
    nonce: bytes
    wrapped: bytes = field(repr=False)

    def data_key(self, passphrase: bytes) -> bytes:
        """Return the data key. Raises ValueError if the passphrase is wrong."""
        key = self.stretching.key(passphrase, self.salt)
        try:
            return AESGCM(key).decrypt(self.nonce, self.wrapped, _OF_DATA_KEY)
        except (InvalidTag, ValueError):
            raise ValueError("the passphrase is wrong") from None

    def written(self) -> bytes:
        """Return the JSON form for `read_wrapped`.

        For example: `{"kdf": "scrypt", "n": 32768, "r": 8, "p": 3, ..., "data_key": "5f2c..."}`.
        """
        how = self.stretching
        document = {"kdf": "scrypt", "n": how.n, "r": how.r, "p": how.p, "cipher": "aes-256-gcm"}
        document |= {"salt": self.salt.hex(), "nonce": self.nonce.hex(), "data_key": self.wrapped.hex()}
        return json.dumps(document, indent=1).encode() + b"\n"


def wrapped(data_key: bytes, passphrase: bytes) -> WrappedKey:
    """Encrypt a data key with a passphrase."""
    how, salt, nonce = ScryptParameters(), secrets.token_bytes(16), secrets.token_bytes(_NONCE)
    sealed = AESGCM(how.key(passphrase, salt)).encrypt(nonce, data_key, _OF_DATA_KEY)
    return WrappedKey(how, salt, nonce, sealed)


def read_wrapped(content: bytes) -> WrappedKey:
    """Parse the JSON of `WrappedKey.written`. Raises ValueError for anything else."""
    try:
        document: Any = json.loads(content)
        how = ScryptParameters(*(int(document[item]) for item in ("n", "r", "p")))
        parts = [bytes.fromhex(document[item]) for item in ("salt", "nonce", "data_key")]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a field is missing or has another form ({error})") from error
    if not how.bearable or (document.get("kdf"), document.get("cipher")) != ("scrypt", "aes-256-gcm"):
        raise ValueError("it is of another version or damaged")
    return WrappedKey(how, *parts)
