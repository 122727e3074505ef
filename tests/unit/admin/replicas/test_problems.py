"""Tests of the problems of several servers as one list."""

from meshwright.admin.replicas.problems import of_others
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Severity

CART = ObjectKey(TRAFFIC_SPLIT, Namespace("shop"), "cart")


def _problem(
    proxy: str, code: str = "resource-rejected", key: ObjectKey | None = CART, value: str = "rejected: no"
) -> Problem:
    return Problem(
        code=code,
        severity=Severity.ERROR,
        origin=FromSource("proxies"),
        key=key,
        field="route r",
        value=value,
        expected=f"Proxy {proxy} (and perhaps other proxies) rejected route r.",
    )


def test_rejection_at_several_servers_counts_once() -> None:
    """The problem of this server is shown, otherwise that of the first proxy."""
    one, two, three = map(_problem, ("a.cart.shop", "b.cart.shop", "c.cart.shop"))
    assert of_others([two], [three, one]) == ()
    assert of_others([], [three, one]) == (one,)


def test_other_problems_stay() -> None:
    """Another message may have another cause, and numbers of further rejections are of one server each."""
    own = _problem("a.cart.shop")
    others = (
        _problem("b.cart.shop", value="rejected: never"),
        _problem("b.cart.shop", code="shared-identity"),
        _problem("b.cart.shop", key=None),
    )
    assert set(of_others([own, _problem("a.cart.shop", key=None)], others)) == set(others)
