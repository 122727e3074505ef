"""Tests of explanations of calls from outside the mesh: IngressBackends, and the missing one."""

import pytest
import yaml

from catalog.store.view import View
from meshwright.admin.pages.calls.explain import answer, read_request
from meshwright.admin.pages.calls.fields import QueryError
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
def test_notation_of_a_caller_outside_the_mesh_is_read(text: str, client: Outsider | None) -> None:
    """An address with options is read as an outside caller; the error of a wrong one shows the notation."""
    query = {"from": text, "to": "default/shop:80"}
    if client is None:
        with pytest.raises(QueryError, match="outside the mesh <IP>"):
            read_request(query, ())
    else:
        assert read_request(query, ()).client == client


def test_ingress_backends_are_explained_for_outside_callers() -> None:
    """The IngressBackend that admits a caller is the reason.

    For a refused caller, the steps say why each IngressBackend does not apply.
    """
    mesh = a.view(*SHOP, NEAR, a.ingress("other", ("shop", 8080, "NOTHING"), ranges=("0.0.0.0/0",)))
    result = _answer(mesh, "192.0.2.7")
    assert (result["answer"], result["because"]) == ("allowed", ["IngressBackend default/near"])
    result = _answer(mesh, "198.51.100.1")
    texts = [step["text"] for step in result["steps"]]  # type: ignore[attr-defined]
    assert (result["answer"], result["missing"]) == ("refused", [])
    assert "IngressBackend default/near, for plain text, names other sources." in texts
    assert any("default/other" in text and "does not count" in text for text in texts)


@pytest.mark.parametrize("caller", ["192.0.2.7", "fd00::7", "192.0.2.7,tls", "192.0.2.7,name=gateway.test"])
def test_missing_ingress_backend_admits_the_outside_caller(caller: str) -> None:
    """The printed IngressBackend is valid when it is read again, and it admits the caller."""
    result = _answer(a.view(*SHOP), caller)
    (missing,) = list(result["missing"])  # type: ignore[call-overload]
    assert result["answer"] == "refused"
    mended = _answer(a.view(*SHOP, value(yaml.safe_dump(missing))), caller)
    assert (mended["answer"], mended["missing"]) == ("allowed", [])
