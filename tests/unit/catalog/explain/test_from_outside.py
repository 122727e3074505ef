"""A call from outside the mesh, explained: what each IngressBackend says, and which one would let it in."""

import pytest
import yaml

from catalog.store.view import View
from meshwright.admin.pages.calls.explain import QueryError, answer, read_request
from meshwright.mesh.names import IpAddress
from meshwright.mesh.policies.callers import Outsider
from tests.meshes import values as a
from tests.meshes.reading import value

SHOP = (a.service("shop"), a.workload("shop", "10.0.0.1"))
NEAR = a.ingress("near", ("shop", 8080, "NOTHING"), ranges=("192.0.2.0/24",))


def _answer(mesh: View, caller: str) -> dict[str, object]:
    return dict(answer(mesh, {"from": caller, "to": "default/shop:80"}, ()))


@pytest.mark.parametrize(
    ("text", "client"),
    [
        ("192.0.2.7", Outsider(IpAddress("192.0.2.7"))),
        ("fd00::7,tls", Outsider(IpAddress("fd00::7"), tls=True)),
        ("192.0.2.7,server=A.test", Outsider(IpAddress("192.0.2.7"), tls=True, server_name="a.test")),
        ("192.0.2.7,name=a.test", Outsider(IpAddress("192.0.2.7"), "a.test", tls=True)),
        ("192.0.2.7,tsl", None),
        ("192.0.2.700,tls", None),
    ],
)
def test_how_a_caller_is_written(text: str, client: Outsider | None) -> None:
    """What is none is an error that says what would be right."""
    query = {"from": text, "to": "default/shop:80"}
    if client is None:
        with pytest.raises(QueryError, match="outside the mesh <IP>"):
            read_request(query, ())
    else:
        assert read_request(query, ()).client == client


def test_what_lets_it_in_is_named() -> None:
    """With what it is for; of those who are not let in what they are not."""
    mesh = a.view(*SHOP, NEAR, a.ingress("other", ("shop", 8080, "NOTHING"), ranges=("0.0.0.0/0",)))
    found = _answer(mesh, "192.0.2.7")
    assert (found["answer"], found["because"]) == ("allowed", ["IngressBackend default/near"])
    found = _answer(mesh, "198.51.100.1")
    texts = [each["text"] for each in found["steps"]]  # type: ignore[attr-defined]
    assert (found["answer"], found["missing"]) == ("refused", [])
    assert "IngressBackend default/near, for plain text, names other sources." in texts
    assert any("default/other" in each and "does not count" in each for each in texts)


@pytest.mark.parametrize("caller", ["192.0.2.7", "fd00::7", "192.0.2.7,tls", "192.0.2.7,name=gateway.test"])
def test_with_what_is_missing_it_is_let_in(caller: str) -> None:
    """As it is printed: read again it is good, and whoever asked gets in."""
    found = _answer(a.view(*SHOP), caller)
    (missing,) = list(found["missing"])  # type: ignore[call-overload]
    assert found["answer"] == "refused"
    mended = _answer(a.view(*SHOP, value(yaml.safe_dump(missing))), caller)
    assert (mended["answer"], mended["missing"]) == ("allowed", [])
