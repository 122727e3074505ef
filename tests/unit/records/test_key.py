"""Tests of keys of records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.records.key import LONGEST_WORD, Key, is_within, key_of, words_of
from tests.tools.hypothesis_profiles import examples

_ENDS = st.sampled_from("abZ09")
WORDS = _ENDS | st.tuples(_ENDS, st.text("aZ0._-", max_size=4), _ENDS).map("".join)


@pytest.mark.parametrize(
    "words", [("authority",), ("proxies", "shop", "cart", "9F0c"), ("services", "shop", "a.b_c-d"), ("0",)]
)
def test_words_become_a_path(words: tuple[str, ...]) -> None:
    """The key of `proxies`, `shop` and `cart` is `proxies/shop/cart`."""
    assert key_of(*words) == "/".join(words)


@pytest.mark.parametrize(
    "word",
    ["", "/", "a/b", "..", ".a", "a.", "-a", "a_", "a b", "a\n", "é", "٣", "a\0", "%2f", "a" * 254],
)
def test_other_words_are_refused(word: str) -> None:
    """A word that a store could read as a path, or that a name cannot have, is an error of the caller."""
    with pytest.raises(ValueError, match=f"^word .* of a key: use 1 to {LONGEST_WORD} of the characters"):
        key_of("proxies", word)


def test_key_has_words() -> None:
    """Without words there is no key."""
    with pytest.raises(ValueError, match="at least one word"):
        key_of()


@pytest.mark.parametrize(
    ("key", "prefix", "expected"),
    [
        ("tokens/a", "tokens", True),
        ("tokens/a/uses/0", "tokens/a", True),
        ("tokens/a", "tokens/a", True),
        ("tokens/ab", "tokens/a", False),
        ("tokens", "tokens/a", False),
        ("tokens-a", "tokens", False),
        ("tokens.a", "tokens", False),
    ],
)
def test_prefix_is_whole_words(key: str, prefix: str, expected: bool) -> None:
    """`tokens/ab` begins with the text of `tokens/a`, but not with its words."""
    assert is_within(Key(key), Key(prefix)) is expected


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=5))
@settings(max_examples=examples(60))
def test_key_is_its_words(words: list[str], others: list[str]) -> None:
    """Words come back from a key, and a key is within another one exactly if its words begin with those."""
    key, prefix = key_of(*words), key_of(*others)
    assert words_of(key) == tuple(words)
    assert is_within(key, prefix) is (words[: len(others)] == others)
    assert is_within(key_of(*others, *words), prefix)
