"""Tests of pictures: the differences between any two are found."""

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.values.picture import REMEMBERED, Picture

EDITS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([None, 1, 2]), max_size=3)


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int | None]:
    return {key: after.get(key) for key in before | after if before.get(key) != after.get(key)}


@given(st.lists(EDITS, max_size=8), st.integers(0, 7))
def test_since_is_the_difference_between_any_two_pictures(
    history: list[dict[str, int | None]], at: int
) -> None:
    """It works in both directions; a value that was removed and restored is no difference."""
    pictures: list[Picture[str, int]] = [Picture({"a": 1})]
    for edits in history:
        pictures.append(pictures[-1].changed(edits))
    before, after = pictures[min(at, len(history))], pictures[-1]
    assert after.since(before) == _difference(dict(before), dict(after))
    assert before.since(after) == _difference(dict(after), dict(before))
    assert Picture(dict(after)).since(before) == _difference(dict(before), dict(after))
    assert list(after) == sorted(after)


LARGE = dict.fromkeys(range(50), 0)
"""Large enough for a layer: several changes share this table."""


@given(
    st.lists(
        st.dictionaries(st.integers(0, 60), st.sampled_from([None, 1, 2]), min_size=1, max_size=3),
        max_size=30,
    )
)
def test_picture_equals_the_sum_of_its_edits(history: list[dict[int, int | None]]) -> None:
    """The number of layers and tables does not matter, and earlier pictures stay unchanged."""
    pictures, plain = [Picture(LARGE)], [dict(LARGE)]
    for edits in history:
        pictures.append(pictures[-1].changed(edits))
        now = {**plain[-1], **edits}
        plain.append({key: value for key, value in now.items() if value is not None})
    for picture, values in zip(pictures, plain, strict=True):
        assert picture == values
        assert picture == Picture(values)
        assert (picture == pictures[-1]) is (values == plain[-1])
        assert list(picture.items()) == sorted(values.items())
        assert len(picture) == len(values)
        for key in range(61):
            assert picture.get(key) == values.get(key)
            assert (key in picture) is (key in values)
        assert picture.get(-1, 7) == 7
    with pytest.raises(KeyError):
        Picture(LARGE).changed({3: None})[3]


def test_change_copies_no_table() -> None:
    """It needs memory for one layer, independent of the size of the picture."""
    picture, sizes = Picture(dict.fromkeys(range(10_000), 0)), []
    tracemalloc.start()
    try:
        for number in range(10):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            picture = picture.changed({number: 1})
            sizes.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert max(sizes) < sys.getsizeof(dict.fromkeys(range(10_000), 0)) / 20


def test_difference_to_a_forgotten_picture_is_computed() -> None:
    """The first picture is more steps ago than a picture remembers, so all values are compared."""
    first = picture = Picture({0: 0})
    for number in range(1, REMEMBERED + 3):
        picture = picture.changed({number: number})
    assert picture.since(first) == {number: number for number in range(1, REMEMBERED + 3)}


def test_edits_without_effect_return_the_same_picture() -> None:
    """Examples are equal values and the removal of missing keys."""
    picture = Picture({"a": 1, "b": 2})
    assert picture.changed({"a": 1, "c": None}) is picture
    assert Picture.from_mapping(picture) is picture


def test_picture_is_independent_of_its_source_mapping() -> None:
    """A picture is immutable."""
    values = {"a": 1}
    picture = Picture(values)
    values["a"] = 2
    assert picture == {"a": 1}
    assert picture != Picture({"a": 2})


class _Compared:
    """A value that counts its comparisons."""

    times = 0

    def __eq__(self, other: object) -> bool:
        _Compared.times += 1
        return self is other

    __hash__ = None  # type: ignore[assignment]


def test_first_values_of_an_empty_picture_are_not_compared() -> None:
    """A mesh starts with thousands of values, which are stored and reported without comparisons."""
    nothing: Picture[int, _Compared] = Picture()
    values = {key: _Compared() for key in range(9)}
    _Compared.times = 0
    picture = nothing.changed({**values, 9: None})
    assert dict(picture.since(nothing)) == picture  # identical values are equal without a comparison
    assert (len(picture), _Compared.times) == (9, 0)
    assert nothing.changed({9: None}) is nothing
