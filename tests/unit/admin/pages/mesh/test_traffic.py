"""Tests of the traffic page: the rows that belong to a service."""

from meshwright.admin.pages.mesh.traffic import backends_of
from meshwright.mesh.gateway.filters import Filters, Mirror
from meshwright.mesh.gateway.rules import Rule
from tests.meshes import gateway as g
from tests.meshes import values as a


def test_rows_of_an_apex_are_those_of_its_backends() -> None:
    """The filter for an apex service means its backends. Calls are counted under the backends' names."""
    things = (*(a.service(item) for item in ("shop", "v1", "v2")), a.split("s", "shop", ("v1", 1), ("v2", 1)))
    assert backends_of(a.view(*things), "default/shop") == {"default/v1", "default/v2"}
    assert backends_of(a.view(*things), "default/v1") == frozenset()
    assert backends_of(None, "default/shop") == frozenset()


def test_rows_of_a_parent_are_those_of_the_backends_of_its_routes() -> None:
    """Routes of producers and consumers count, and receivers of copies too."""
    names = ("shop", "v1", "v2", "v3", "copies")
    copied = Filters(mirrors=(Mirror(g.to("copies").to),))
    at_shop = (g.parent("shop", namespace="default"),)
    mesh = g.view(
        *map(a.service, names),
        g.http_route("own", Rule(filters=copied, backends=(g.to("v1"), g.to("none"))), parents=at_shop),
        g.http_route("theirs", Rule(backends=(g.to("v2"),)), parents=at_shop, namespace="other"),
        g.http_route("refused", Rule(backends=(g.to("v3"),)), parents=(g.parent("shop", port=1),)),
    )
    assert backends_of(mesh, "default/shop") == {"default/v1", "default/v2", "default/copies"}
