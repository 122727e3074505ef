"""Keys of records: words with slashes between them, for example `proxies/shop/cart/9f0c…`. A pure module."""

import re
from typing import Final, NewType

Key = NewType("Key", str)
"""Key of one record, or the common beginning of the keys of several records; made by `key_of`."""

LONGEST_WORD: Final = 253
"""Limit of a word in characters, as for names of Kubernetes objects."""

_WORD: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


def key_of(*words: str) -> Key:
    """Return the key of these words, for example `key_of("tokens", "4f1c")` for `tokens/4f1c`.

    A word is a name as in Kubernetes, with upper case allowed, so that each store can use a key as a path.
    Raises ValueError for another word, and without words.
    """
    if not words:
        raise ValueError("a key has at least one word")
    for word in words:
        if len(word) > LONGEST_WORD or not _WORD.fullmatch(word):
            raise ValueError(
                f"word {word!r} of a key: use 1 to {LONGEST_WORD} of the characters a-z, A-Z, 0-9, '.', '_'"
                " and '-', with a letter or digit at both ends"
            )
    return Key("/".join(words))


def words_of(key: Key) -> tuple[str, ...]:
    """Return the words of a key."""
    return tuple(key.split("/"))


def is_within(key: Key, prefix: Key) -> bool:
    """Return whether a key is the prefix, or begins with all its words: `a/b` is within `a`, `ab` is not."""
    return key == prefix or key.startswith(f"{prefix}/")
