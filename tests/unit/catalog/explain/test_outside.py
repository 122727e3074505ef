"""Tests of explanations of calls out of the mesh: Egresses, and the missing one."""

from typing import Any

import pytest
import yaml

from meshwright.admin.pages.calls.explain import answer
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.providers.directory.manifests import Manifests
from tests.meshes import values as a

BUYER = a.workload("buyer", "10.0.0.9")
BOOKS = a.egress("books", "buyer", (80, "http"), hosts=("books.test",), groups=("reading",))
READING = a.route_group("reading", a.match("reading", "/books/.*"))
SECURE = a.egress("secure", "buyer", (443, "https"), hosts=("*.books.test",), networks=("192.0.2.0/24",))
BY_ADDRESS = a.egress("six", "buyer", (8090, "http"), hosts=("2001:db8::7",))
THINGS = (BUYER, BOOKS, READING, SECURE, BY_ADDRESS, a.service("shop", address="10.96.0.1"))


def explained(to: str, path: str = "/", *headers: str, things: tuple[object, ...] = THINGS) -> dict[str, Any]:
    """Explain a call by the buyer."""
    return dict(answer(a.view(*things), {"from": "default/buyer", "to": to, "path": path}, headers))


@pytest.mark.parametrize(
    ("to", "path", "headers", "expected", "because"),
    [
        ("books.test:80", "/books/1", (), "allowed", ["Egress default/books"]),
        ("Books.Test:80", "/books/1", (), "allowed", ["Egress default/books"]),
        ("198.51.100.1:80", "/books/1", ("Host: books.test:80",), "allowed", ["Egress default/books"]),
        ("198.51.100.1:80", "http://books.test/books/1", (), "allowed", ["Egress default/books"]),
        ("books.test:80", "/other", (), "refused", []),
        ("other.test:80", "/books/1", (), "refused", []),
        ("other.test:8080", "/", (), "unreachable", []),
        ("a.books.test:443", "/", (), "depends", ["Egress default/secure"]),
        ("192.0.2.7:443", "https://a.books.test/", (), "allowed", ["Egress default/secure"]),
        ("198.51.100.1:443", "https://a.books.test/", (), "unreachable", []),
        ("198.51.100.1:8090", "/", ("Host: [2001:db8::7]:8090",), "allowed", ["Egress default/six"]),
        ("198.51.100.1:8090", "http://[2001:db8::7]/", (), "allowed", ["Egress default/six"]),
        ("198.51.100.1:8090", "http://[2001:db8::8]/", (), "refused", []),
    ],
)
def test_call_out_of_the_mesh_is_explained_with_its_egress(
    to: str, path: str, headers: tuple[str, ...], expected: str, because: list[str]
) -> None:
    """The Egress that allows a call is the reason of the answer, and a step refers to it."""
    result = explained(to, path, *headers)
    assert (result["answer"], result["because"]) == (expected, because)
    named = {item["object"] for step in result["steps"] for item in step["objects"]}
    assert set(because) <= named


@pytest.mark.parametrize(
    ("to", "path"), [("x.test:80", "/"), ("x.test:8443", "https://x.test/"), ("books.test:80", "/z")]
)
def test_missing_egress_allows_the_call(to: str, path: str) -> None:
    """The missing Egress is read without problems, and with it the call is allowed."""
    (missing,) = explained(to, path)["missing"]
    state = Manifests().apply("missing.yaml", yaml.safe_dump(missing))
    assert state.problems() == ()
    (added,) = (sourced_object.value for sourced_object in state.objects().values())
    assert explained(to, path, things=(*THINGS, added))["answer"] == "allowed"


@pytest.mark.parametrize("to", ["shop.default:80", "shop.default.svc.cluster.local:80", "10.96.0.1:80"])
def test_service_of_the_mesh_is_refused_as_an_outside_destination(to: str) -> None:
    """A host name or address of a Service in the mesh is refused, and the error shows its notation."""
    with pytest.raises(QueryError, match="ask about default/shop:80"):
        explained(to)


def test_destination_without_a_namespace_is_refused() -> None:
    """A bare name is probably a mistake, so it is refused, and the error shows the notation."""
    with pytest.raises(QueryError, match="must be <namespace>/<service>:<port>"):
        explained("shop:80")
