"""Pairs as files of the state directory."""

import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from certs import files
from certs.errors import CorruptPairError
from certs.leaf import read_leaf
from certs.material import PrivateKey
from certs.pair import Pair, matched_pair
from certs.stored import Holder

_KEY_BLOCK: Final = re.compile(rb"-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----\n?", re.DOTALL)


class PairFiles:
    """Pairs, each in `<state>/<holder>/certificate.pem` (0600), as certs.stored.Pairs has it."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def load(self, holder: Holder) -> Pair | None:
        """Read a holder's pair; None where there is none. Raises CorruptPairError, StateError."""
        path = self._path(holder)
        content = files.read(path)
        if content is None:
            return None
        keys = _KEY_BLOCK.findall(content)
        if len(keys) != 1:
            raise CorruptPairError(f"{path} does not hold exactly one private key (PEM, PKCS#8)")
        try:
            return matched_pair(_KEY_BLOCK.sub(b"", content), PrivateKey(keys[0]))
        except ValueError as error:
            # Cut from its cause: what a parser says of a file with a key in it is not ours to pass on.
            raise CorruptPairError(f"{path} cannot be used: {error}") from None

    def keep(self, holder: Holder, pair: Pair) -> None:
        """Keep a pair in one file, key first: one file is replaced as a whole, two could not be.

        It is not waited until the disk has it. What a power failure takes of it, `load` notices: it is
        made anew. Of hundreds, two waits for each are most of what they cost.
        """
        path = self._path(holder)
        files.private_directory(path.parent)
        files.write_private(path, pair.key.reveal() + pair.chain_pem, durable=False)

    def place(self, holder: Holder) -> str:
        """Return the path."""
        return str(self._path(holder))

    def services_end(self) -> datetime | None:
        """Return the end of the service certificate that ends last, None where there is none.

        What is no certificate ends never. Raises StateError.
        """
        ends = list[datetime]()
        for path in sorted((self._state / "services").glob("*/*/certificate.pem")):
            with suppress(ValueError):
                ends.append(read_leaf(_KEY_BLOCK.sub(b"", files.read(path) or b"")).not_after)
        return max(ends, default=None)

    def _path(self, holder: Holder) -> Path:
        return self._state / holder / "certificate.pem"
