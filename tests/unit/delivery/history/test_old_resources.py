"""Tests of replaced resources, which are kept within a limit."""

from dataclasses import replace

from meshwright.delivery.history.old_resources import BESIDE, ReplacedResources
from xds.protocol.resources.resource import ROUTE, SECRET, Renewal, Resource, ResourceName, TypeUrl, Version

NAME = ResourceName("a")


def _resource(version: str, type_url: TypeUrl = ROUTE) -> Resource:
    return Resource(type_url, NAME, Version(version), b"12345")


def test_oldest_resources_are_dropped_first() -> None:
    """The limit is a size in bytes; a resource that is kept twice is counted once."""
    kept = ReplacedResources(limit=2 * (BESIDE + 5) + 2)
    for version in ("1", "2", "2", "3"):
        kept.keep(_resource(version))
    resources = [kept.find(ROUTE, NAME, Version(version)) for version in ("1", "2", "3")]
    assert resources == [None, _resource("2"), _resource("3")]


def test_secret_is_never_kept() -> None:
    """The body of a secret has a private key."""
    kept = ReplacedResources()
    kept.keep(replace(_resource("1", SECRET), secret=True))
    assert kept.find(SECRET, NAME, Version("1")) is None


def test_recipe_of_a_resource_is_not_kept() -> None:
    """Recipes are policy, whose size is not counted and which no page shows."""
    kept = ReplacedResources()
    kept.keep(
        replace(_resource("1"), recipe=object(), renewal=Renewal(lambda *_: frozenset(), lambda one, _: one))
    )
    assert kept.find(ROUTE, NAME, Version("1")) == _resource("1")
