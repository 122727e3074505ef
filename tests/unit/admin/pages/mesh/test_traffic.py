"""How calls fare: which rows are meant by a service."""

from meshwright.admin.pages.mesh.traffic import backends_of
from tests.meshes import values as a


def test_who_asks_about_an_apex_means_the_backends_of_its_splits() -> None:
    """Calls to it are counted under their names."""
    things = (*(a.service(each) for each in ("shop", "v1", "v2")), a.split("s", "shop", ("v1", 1), ("v2", 1)))
    assert backends_of(a.view(*things), "default/shop") == {"default/v1", "default/v2"}
    assert backends_of(a.view(*things), "default/v1") == frozenset()
    assert backends_of(None, "default/shop") == frozenset()
