"""Tests of the settle time: when a changed file takes effect."""

from datetime import timedelta

from meshwright.providers.directory.file_form import Content
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.directory.settlement import PATIENCE, Belief, settle
from tests.meshes.texts import account, account_key

START = timedelta(hours=3)
WAIT = timedelta(milliseconds=300)


def _belief(**files: str) -> Belief:
    return Belief(Manifests().apply_all(files))


def _walk(wait: timedelta, steps: list[tuple[int, dict[str, Content]]]) -> list[list[str]]:
    """Return the names in force after each step (milliseconds, observed), starting with a and b."""
    belief = _belief(a=account("a"), b=account("b"))
    names = []
    for at, observed in steps:
        belief = settle(belief, observed, START + timedelta(milliseconds=at), wait)
        names.append([key.name for key in belief.state.objects()])
    return names


def test_valid_change_takes_effect_at_once() -> None:
    """A change that loses no object and adds no error is not in doubt."""
    belief = settle(_belief(a=account("a")), {"a": account("a") + "---\n" + account("c")}, START, WAIT)
    assert [key.name for key in belief.state.objects()] == ["a", "c"]
    assert (belief.doubts, belief.due) == ({}, None)


_RECREATED: list[tuple[int, dict[str, Content]]] = [
    (0, {"a": None}),
    (20, {"a": ""}),
    (40, {"a": account("a")[:20]}),
    (60, {"a": account("a")}),
    (900, {}),
]


def test_object_stays_in_force_while_its_file_is_recreated() -> None:
    """The file is deleted, empty, half-written and restored; the object is in force at every step."""
    assert _walk(WAIT, _RECREATED) == [["a", "b"]] * 5


def test_object_is_removed_by_the_same_steps_without_settle_time() -> None:
    """Negative control: without waiting, the same steps take the object out of force."""
    assert ["b"] in _walk(timedelta(0), _RECREATED)


def test_deletion_takes_effect_after_the_settle_time() -> None:
    """The object stays in force until then, and `due` is the time of the next check."""
    belief = settle(_belief(a=account("a")), {"a": None}, START, WAIT)
    assert belief.due == START + WAIT
    assert list(belief.state.objects()) == [account_key("a")]
    assert settle(belief, {}, START + WAIT, WAIT) == Belief(Manifests(), {}, None)


def test_object_moved_between_files_is_not_in_doubt() -> None:
    """Both files change together and no object is lost."""
    both = {"a": "# moved\n", "b": account("b") + "---\n" + account("a")}
    belief = settle(_belief(a=account("a"), b=account("b")), both, START, WAIT)
    assert (belief.doubts, list(belief.state.objects())) == ({}, [account_key("a"), account_key("b")])


def test_new_error_waits_and_delays_no_other_change() -> None:
    """The bad file is in doubt, while the change of the other file takes effect at once."""
    observed: dict[str, Content] = {"a": "a: b: c\n", "b": account("c")}
    belief = settle(_belief(a=account("a"), b=account("a")), observed, START, WAIT)
    assert [key.name for key in belief.state.objects()] == ["a", "c"]
    assert belief.state.problems() == ()
    after = settle(belief, {}, START + WAIT, WAIT)
    assert [problem.code for problem in after.state.problems()] == ["MW1101", "MW1107"]


def test_file_that_keeps_changing_takes_effect_after_a_bounded_wait() -> None:
    """The total wait is limited by PATIENCE."""
    belief = _belief(a=account("a"))
    step = WAIT / 2
    now = START
    for count in range(2 * PATIENCE + 1):
        belief = settle(belief, {"a": f"# {count}\n"}, now, WAIT)
        now += step
    assert belief.state.objects() == {}
