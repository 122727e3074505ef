"""Earlier versions of resources are kept within bounds."""

from dataclasses import replace

from meshwright.delivery.history.old_resources import BESIDE, ReplacedResources
from xds.protocol.resources.resource import ROUTE, SECRET, Renewal, Resource, ResourceName, TypeUrl, Version

NAME = ResourceName("a")


def _resource(version: str, type_url: TypeUrl = ROUTE) -> Resource:
    return Resource(type_url, NAME, Version(version), b"12345")


def test_the_oldest_go_first() -> None:
    """By what each takes; one that is kept already is not counted twice."""
    kept = ReplacedResources(limit=2 * (BESIDE + 5) + 2)
    for version in ("1", "2", "2", "3"):
        kept.keep(_resource(version))
    found = [kept.find(ROUTE, NAME, Version(version)) for version in ("1", "2", "3")]
    assert found == [None, _resource("2"), _resource("3")]


def test_a_secret_is_never_kept() -> None:
    """Its body holds a key."""
    kept = ReplacedResources()
    kept.keep(replace(_resource("1", SECRET), secret=True))
    assert kept.find(SECRET, NAME, Version("1")) is None


def test_what_it_was_made_from_is_not_kept() -> None:
    """That is policy, which is not counted, and which nobody asks of it."""
    kept = ReplacedResources()
    kept.keep(replace(_resource("1"), recipe=object(), renewal=Renewal(lambda *_: False, lambda one, _: one)))
    assert kept.find(ROUTE, NAME, Version("1")) == _resource("1")
