"""Certificates with keys as files of the state directory."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from certs.errors import CorruptPairError, StateError
from certs.keys.leaf import read_leaf
from certs.keys.material import PrivateKey
from certs.keys.pair import Pair, matched_pair
from certs.state import files
from certs.state.sealing import PLAIN, Seal, UnopenedError, private_keys, without_keys
from certs.state.stored_pair import ADS_SERVER, WEBHOOK, Holder

_COMPARING: Final = threading.Lock()
"""Held between the comparison with the stored pair and the write.

One lock for all stores of this process, because several may have one state directory. The lock of the
directory excludes other processes.
"""


class PairFiles:
    """Pairs in `<state>/<holder>/certificate.pem` (0600), as an implementation of `stored_pair.Pairs`.

    For example: `services/shop/cart/certificate.pem`.

    `seal` encrypts the keys.
    """

    def __init__(self, state: Path, seal: Seal = PLAIN) -> None:
        self._state = state
        self._seal = seal

    def load(self, holder: Holder) -> Pair | None:
        """Read a holder's certificate and key, or return None without a file.

        Raises CorruptPairError, StateError.
        """
        path = self._path(holder)
        content = files.read(path)
        if content is None:
            return None
        try:
            text = self._seal.opened(content)
            keys = private_keys(text)
            if len(keys) != 1:
                raise CorruptPairError(f"{path} must have exactly one private key (PEM, PKCS#8)")
            return matched_pair(without_keys(text), PrivateKey(keys[0]))
        except UnopenedError as error:  # intact: must not be replaced by a new pair
            raise StateError(f"{path} cannot be used: {error}") from None
        except ValueError as error:
            # `from None`: a parser's message about a file with a key must not get into logs.
            raise CorruptPairError(f"{path} cannot be used: {error}") from None

    def keep(self, holder: Holder, pair: Pair, before: str | None) -> Pair:
        """Write a pair to one file, key first: only one file can be replaced atomically.

        Another pair than the one with the serial `before` stays, and is returned.

        The call does not wait for the disk. `load` detects damage by a power failure, and a new pair is made.
        With hundreds of pairs two fsync calls for each would be most of the cost.
        """
        path = self._path(holder)
        with _COMPARING:
            if (there := self._other(holder, before)) is not None:
                return there
            files.private_directory(path.parent)
            files.write_private(path, self._seal.closed(pair.key.reveal() + pair.chain_pem), durable=False)
        return pair

    def _other(self, holder: Holder, before: str | None) -> Pair | None:
        """Return the stored pair, unless it is the one with the serial `before`, missing or corrupt."""
        content = files.read(self._path(holder))
        if content is None:
            return None
        with suppress(ValueError):  # a certificate is read faster than it is compared with its key
            if read_leaf(without_keys(content)).serial == before:
                return None
        with suppress(CorruptPairError):
            return self.load(holder)
        return None

    def place(self, holder: Holder) -> str:
        """Return the path of a holder's file."""
        return str(self._path(holder))

    def services_end(self) -> datetime | None:
        """Return the latest end of all service certificates, or None without any.

        Files without a readable certificate are ignored. Raises StateError.
        """
        return max(self._ends("services/*/*"), default=None)

    def last_end(self) -> datetime | None:
        """Return the latest end of validity of all stored certificates, including the server's own."""
        return max((*self._ends("services/*/*"), *self._ends(ADS_SERVER), *self._ends(WEBHOOK)), default=None)

    def services(self) -> tuple[Holder, ...]:
        """Return the holders of all service certificates, sorted, also of unreadable ones."""
        paths = self._state.glob("services/*/*/certificate.pem")
        return tuple(sorted(Holder(str(path.parent.relative_to(self._state))) for path in paths))

    def _ends(self, holders: str) -> Iterator[datetime]:
        for path in sorted(self._state.glob(f"{holders}/certificate.pem")):
            with suppress(ValueError):
                yield read_leaf(without_keys(files.read(path) or b"")).not_after

    def _path(self, holder: Holder) -> Path:
        return self._state / holder / "certificate.pem"
