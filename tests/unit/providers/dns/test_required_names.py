"""Tests of the DNS names that are asked for, which follow from the objects alone."""

from datetime import timedelta

from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.service import DnsName, Service, ServiceKey
from meshwright.providers.dns.book import DnsBook
from meshwright.providers.dns.schedule import PACING
from tests.meshes import values as a
from tests.meshes.sources import instead

NOW = timedelta(hours=3)


def _service(name: str, *names: str) -> Service:
    return Service(ServiceKey(Namespace("shop"), ServiceName(name)), (), dns_names=tuple(map(DnsName, names)))


def test_names_are_asked_for_while_a_service_has_them() -> None:
    """Services are added, changed, lose their names and are removed; other objects are ignored."""
    book = DnsBook(PACING, timedelta(0))
    named, plain, other = _service("a", "a.test"), _service("b"), _service("b", "b.test")
    nameless = _service("a")

    def asked(edits: dict[ObjectKey, SourcedObject | None]) -> tuple[bool, list[str]]:
        news = book.follow(edits)
        book.settle(NOW)
        for question in book.due(NOW, 9):
            book.give_back(question)
        return news, sorted({question.name for question in book._askers})

    assert asked(instead([named, plain, a.workload("c", "10.0.0.1")])) == (True, ["a.test"])
    assert asked(instead([other], [plain])) == (True, ["a.test", "b.test"])
    assert asked(instead([other], [other])) == (False, ["a.test", "b.test"])
    assert asked(instead([nameless], [named])) == (True, ["b.test"])
    assert asked(instead([], [other])) == (True, [])
    assert asked(instead([], [nameless])) == (False, [])
