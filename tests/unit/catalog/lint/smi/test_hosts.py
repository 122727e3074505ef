"""Tests of lint for matches of hosts that usual clients never send."""

import pytest

from catalog.lint.problems import problems
from tests.meshes import values as a


@pytest.mark.parametrize(
    ("regex", "said"),
    [
        ("shop", ""),
        (r"Shop\.default:8080", ""),
        (r"shop_1\.", ""),
        (r"\[::1\]:8080", ""),
        ("shop.*", ""),
        ("http://shop", "Clients never send this as the host of a request, so"),
        ("shop/books", "Clients never send this as the host of a request, so"),
        ("me@shop", "Clients never send this as the host of a request, so"),
        (r"\*\.shop", "Clients never send this as the host of a request, so"),
        ("shop one", "Clients never send this as the host of a request, so"),
        (r"shop\.\.default", "Clients never send this as the host of a request, so"),
        ("shop:99999", "Clients never send this as the host of a request, so"),
        ("shop:65535", ""),
        ("shop:80", "Most clients leave out port 80"),
        ("https?://shop.*", "Clients never send this as the host of a request, so"),
        (r"shop\.[a-z]+/books", "Clients never send this as the host of a request, so"),
        (r"shop\.[a-z/]+", ""),
        (r"[a-z]+@shop", "Clients never send this as the host of a request, so"),
        (r"shop\.[a-z]+/?", ""),
        (r"shop\.[a-z]+/{0,1}", ""),
        ("shop.*:80", "Most clients leave out port 80"),
        ("shop.*:80$", "Most clients leave out port 80"),
        ("shop.*:800?", ""),
        ("shop.*:8080", ""),
        ("shop(/x)?", ""),
        ("shop|a/b", ""),
    ],
)
@pytest.mark.parametrize("name", ["host", "Host"])
def test_host_that_clients_never_send_is_reported(name: str, regex: str, said: str) -> None:
    """The problem is at the match's header. An expression that may fit a usual host is not reported."""
    view = a.view(a.route_group("g", a.match("m", None, headers=((name, regex),))))
    result = [problem for problem in problems(view) if problem.code == "MW2059"]
    assert [(problem.field, problem.value) for problem in result] == [
        (f"spec.matches[0].headers.{name}", regex)
    ] * bool(said)
    assert all(problem.expected.startswith(said) for problem in result)
