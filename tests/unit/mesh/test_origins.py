"""Where things come from, as text and in order."""

import itertools

import pytest

from meshwright.mesh.origins import FromSource, InCluster, InFile, Origin


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (InFile("shop/a.yaml", 2, 7), "shop/a.yaml:7 (document 2)"),
        (InFile("a.yaml"), "a.yaml:1 (document 1)"),
        (InCluster("kind-mesh", "4711"), "kind-mesh (resourceVersion 4711)"),
        (FromSource("dns"), "dns"),
        (FromSource("dns", "shop.example by 10.0.0.53"), "dns (shop.example by 10.0.0.53)"),
    ],
)
def test_each_origin_says_where_to_look(origin: Origin, said: str) -> None:
    """A place in a file as an editor takes it; whatever else by name."""
    assert str(origin) == said


def test_origins_of_all_kinds_have_one_order() -> None:
    """By name, then by document and line; documents by number, not by text."""
    ordered: list[Origin] = [
        InFile("a.yaml", 1, 9),
        InFile("a.yaml", 2, 1),
        InFile("a.yaml", 10, 1),
        FromSource("dns"),
        FromSource("dns", "a.test"),
        InCluster("east", "2"),
    ]
    assert all(former.order < latter.order for former, latter in itertools.pairwise(ordered))
