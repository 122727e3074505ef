"""Tests of the traffic page: the rows that belong to a service."""

from meshwright.admin.pages.mesh.traffic import backends_of
from tests.meshes import values as a


def test_rows_of_an_apex_are_those_of_its_backends() -> None:
    """The filter for an apex service means its backends. Calls are counted under the backends' names."""
    things = (*(a.service(item) for item in ("shop", "v1", "v2")), a.split("s", "shop", ("v1", 1), ("v2", 1)))
    assert backends_of(a.view(*things), "default/shop") == {"default/v1", "default/v2"}
    assert backends_of(a.view(*things), "default/v1") == frozenset()
    assert backends_of(None, "default/shop") == frozenset()
