"""Tests of origins: their text and order."""

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
def test_origin_is_printed_as_a_place(origin: Origin, said: str) -> None:
    """A place in a file has the form that editors accept; other origins have a name."""
    assert str(origin) == said


def test_origins_of_all_kinds_have_a_common_order() -> None:
    """The order is name, document and line; documents are compared as numbers."""
    ordered: list[Origin] = [
        InFile("a.yaml", 1, 9),
        InFile("a.yaml", 2, 1),
        InFile("a.yaml", 10, 1),
        FromSource("dns"),
        FromSource("dns", "a.test"),
        InCluster("east", "2"),
    ]
    assert all(former.order < latter.order for former, latter in itertools.pairwise(ordered))
