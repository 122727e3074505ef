"""Tests of suggestions for misspelt words."""

from difflib import SequenceMatcher

import pytest

from meshwright.mesh.problems.spelling import COMPARED, alike, nearest


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("bokstore", ("bookstore", "bookbuyer"), "bookstore"),
        ("BOOKSTORE", ("bookstore",), "bookstore"),
        ("targetport", ("port", "targetPort"), "targetPort"),
        ("buyer", ("Buyer", "buyer"), "Buyer"),
        ("ac", ("aa", "ab", "ad"), None),
        ("abc", ("abd", "abe"), "abe"),
        ("mysql", ("bookstore",), None),
        ("", ("bookstore",), None),
        ("x" * 100_000, ("x",), None),
    ],
)
def test_most_similar_known_word_is_suggested(word: str, known: tuple[str, ...], found: str | None) -> None:
    """The case of letters and the order of the known words do not matter."""
    assert nearest(word, known) == nearest(word, reversed(known)) == found


def test_several_suggestions_are_sorted_by_similarity() -> None:
    """At most the requested number of words is returned."""
    known = ("store-1", "store-10", "store-2", "buyer")
    assert alike("store-1x", known, 2) == ("store-1", "store-10")
    assert len(alike("store-1x", known, 9)) == 3


@pytest.mark.parametrize(
    ("slip", "found"),
    [("w-0500x", "w-0500"), ("w-0000x", "w-0000"), ("w-9999", "w-0999"), ("W-0500X", "w-0500")],
)
def test_number_of_compared_words_is_bounded(monkeypatch: pytest.MonkeyPatch, slip: str, found: str) -> None:
    """Only known words near the misspelt one in the sorted order are compared."""
    compared = list[str]()
    set_seq1 = SequenceMatcher.set_seq1

    def counting(matcher: SequenceMatcher[str], word: str) -> None:
        compared.append(word)
        set_seq1(matcher, word)

    monkeypatch.setattr(SequenceMatcher, "set_seq1", counting)
    known = tuple(f"w-{number:04}" for number in range(5 * COMPARED))
    assert nearest(slip, known) == found
    assert len(set(compared) - {""}) == COMPARED
