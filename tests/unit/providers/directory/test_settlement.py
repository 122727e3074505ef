"""When a changed file is believed."""

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


def test_a_good_change_is_believed_at_once() -> None:
    """Nothing is in doubt."""
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


def test_delete_and_recreate_does_not_flap() -> None:
    """Deleted, empty, half-written, back: the object is in force at every step."""
    assert _walk(WAIT, _RECREATED) == [["a", "b"]] * 5


def test_without_settle_time_it_flaps() -> None:
    """The negative control: the same steps without waiting take the object out of force."""
    assert ["b"] in _walk(timedelta(0), _RECREATED)


def test_a_lasting_deletion_is_believed_after_the_settle_time() -> None:
    """Not before; the due time says when to look again."""
    belief = settle(_belief(a=account("a")), {"a": None}, START, WAIT)
    assert belief.due == START + WAIT
    assert list(belief.state.objects()) == [account_key("a")]
    assert settle(belief, {}, START + WAIT, WAIT) == Belief(Manifests(), {}, None)


def test_an_object_that_moves_is_no_deletion() -> None:
    """Both files at once: nothing is lost, so nothing is in doubt."""
    both = {"a": "# moved\n", "b": account("b") + "---\n" + account("a")}
    belief = settle(_belief(a=account("a"), b=account("b")), both, START, WAIT)
    assert (belief.doubts, list(belief.state.objects())) == ({}, [account_key("a"), account_key("b")])


def test_a_new_error_waits_and_holds_nobody_else() -> None:
    """The bad file is in doubt, the other change is in force at once."""
    observed: dict[str, Content] = {"a": "a: b: c\n", "b": account("c")}
    belief = settle(_belief(a=account("a"), b=account("a")), observed, START, WAIT)
    assert [key.name for key in belief.state.objects()] == ["a", "c"]
    assert belief.state.problems() == ()
    after = settle(belief, {}, START + WAIT, WAIT)
    assert [problem.code for problem in after.state.problems()] == ["MW1101", "MW1107"]


def test_a_file_that_never_rests_is_believed_in_the_end() -> None:
    """Patience has a bound."""
    belief = _belief(a=account("a"))
    step = WAIT / 2
    now = START
    for count in range(2 * PATIENCE + 1):
        belief = settle(belief, {"a": f"# {count}\n"}, now, WAIT)
        now += step
    assert belief.state.objects() == {}
