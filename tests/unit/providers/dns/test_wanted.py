"""Which services are to be resolved."""

from mesh.identity import ServiceIdentity
from mesh.kinds import SERVICE, SERVICE_ACCOUNT, Kind
from mesh.names import Namespace, ServiceAccountName, ServiceName
from mesh.objects import MeshObject, ObjectKey, Sourced
from mesh.origins import InFile
from mesh.picture import Picture
from mesh.service import DnsName, Service, ServiceKey
from providers.dns.wanted import DnsWanted

NS = Namespace("shop")


def _sourced(name: str, value: MeshObject, kind: Kind = SERVICE) -> tuple[ObjectKey, Sourced]:
    key = ObjectKey(kind, NS, name)
    return key, Sourced(key, value, InFile("f"))


def _service(name: str, *names: str) -> Service:
    return Service(ServiceKey(NS, ServiceName(name)), (), dns_names=tuple(map(DnsName, names)))


def test_services_with_names_are_wanted_as_long_as_they_have_some() -> None:
    """They come, change, lose their names and go; other objects do not count."""
    wanted = DnsWanted()
    named, plain = _service("a", "a.test"), _service("b")
    account = _sourced("c", ServiceIdentity(NS, ServiceAccountName("c")), SERVICE_ACCOUNT)
    first = Picture(dict([_sourced("a", named), _sourced("b", plain), account]))
    assert list(wanted.follow(first)) == [named]
    other = _service("b", "b.test")
    second = first.changed(dict([_sourced("b", other)]))
    assert list(wanted.follow(second)) == [named, other]
    third = second.changed(dict([_sourced("a", _service("a"))]))
    assert list(wanted.follow(third)) == [other]
    assert list(wanted.follow(third.changed({ObjectKey(SERVICE, NS, "b"): None}))) == []
    assert list(wanted.follow(dict(first))) == [named]
