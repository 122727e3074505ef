"""A private key as a value that is hidden from everything that prints."""

import hmac
from typing import Final, NoReturn, SupportsIndex, final

_HIDDEN: Final = "PrivateKey(<hidden>)"


@final
class PrivateKey:
    """A private key (PEM, PKCS#8, not encrypted), with bytes available through `reveal()` alone.

    The class is not a dataclass, because `dataclasses.asdict` would copy the bytes.
    """

    __slots__ = ("_pem",)
    _pem: bytes

    def __init__(self, pem: bytes) -> None:
        object.__setattr__(self, "_pem", pem)

    def reveal(self) -> bytes:
        """Return the key's PEM. Allowed only to write a 0600 file, an SDS secret or a child's pipe."""
        return self._pem

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a PrivateKey does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a PrivateKey does not change")

    def __repr__(self) -> str:
        return _HIDDEN

    def __str__(self) -> str:
        return _HIDDEN

    def __format__(self, format_spec: str) -> str:
        return _HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivateKey) and hmac.compare_digest(self._pem, other._pem)

    def __hash__(self) -> int:
        return hash(self._pem)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a PrivateKey is not pickled or copied")
