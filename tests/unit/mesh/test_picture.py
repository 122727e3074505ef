"""Pictures: what differs between two moments is found, however they are related."""

from hypothesis import given
from hypothesis import strategies as st

from mesh.picture import REMEMBERED, Picture

EDITS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([None, 1, 2]), max_size=3)


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int | None]:
    return {key: after.get(key) for key in before | after if before.get(key) != after.get(key)}


@given(st.lists(EDITS, max_size=8), st.integers(0, 7))
def test_since_is_the_difference_to_any_earlier_picture(
    history: list[dict[str, int | None]], at: int
) -> None:
    """And back; what went and came again as it was is no difference."""
    pictures: list[Picture[str, int]] = [Picture({"a": 1})]
    for edits in history:
        pictures.append(pictures[-1].changed(edits))
    before, after = pictures[min(at, len(history))], pictures[-1]
    assert after.since(before) == _difference(dict(before), dict(after))
    assert before.since(after) == _difference(dict(after), dict(before))
    assert Picture(dict(after)).since(before) == _difference(dict(before), dict(after))
    assert list(after) == sorted(after)


def test_what_is_not_remembered_is_compared() -> None:
    """More steps ago than a picture knows."""
    first = picture = Picture({0: 0})
    for number in range(1, REMEMBERED + 3):
        picture = picture.changed({number: number})
    assert picture.since(first) == {number: number for number in range(1, REMEMBERED + 3)}


def test_what_changes_nothing_is_the_very_same_picture() -> None:
    """Equal values, absent keys that go, the same values all over."""
    picture = Picture({"a": 1, "b": 2})
    assert picture.changed({"a": 1, "c": None}) is picture
    assert Picture.of(picture) is picture


def test_a_picture_does_not_follow_what_it_was_made_from() -> None:
    """It is immutable."""
    values = {"a": 1}
    picture = Picture(values)
    values["a"] = 2
    assert picture == {"a": 1}
    assert picture != Picture({"a": 2})
