"""Test of manifests in the form of OSM's published bookstore."""

from pathlib import Path

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import DEPLOYMENT
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.objects import MeshObject, NamespaceObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import (
    Backend,
    HeaderMatch,
    HTTPMatch,
    HTTPRouteGroup,
    PolicyKey,
    RouteKind,
    Rule,
    TCPRoute,
    TrafficSplit,
    TrafficTarget,
)
from meshwright.mesh.service import Protocol, Service, ServiceKey, ServicePort
from meshwright.mesh.workload import PodTemplate, WorkloadKey, WorkloadPort
from meshwright.providers.text.documents import documents
from meshwright.specs.reader import read

BOOKSTORE = Namespace("bookstore")
WAREHOUSE = Namespace("bookwarehouse")
FILE = "bookstore.yaml"


def _identity(name: str, namespace: str) -> ServiceIdentity:
    return ServiceIdentity(Namespace(namespace), ServiceAccountName(name))


def _expected() -> list[MeshObject]:
    return [
        NamespaceObject(BOOKSTORE, (("openservicemesh.io/monitored-by", "osm"),)),
        _identity("bookstore", "bookstore"),
        Service(
            ServiceKey(BOOKSTORE, ServiceName("bookstore")),
            (ServicePort(Port(14001), Port(14001), Protocol.HTTP, "bookstore-port"),),
            (("app", "bookstore"),),
        ),
        Service(
            ServiceKey(WAREHOUSE, ServiceName("mysql")),
            (ServicePort(Port(3306), "client", Protocol.TCP, "client", "appProtocol"),),
            (("app", "mysql"),),
            headless=True,
        ),
        PodTemplate(
            DEPLOYMENT,
            WorkloadKey(BOOKSTORE, "bookstore"),
            _identity("bookstore", "bookstore"),
            (("app", "bookstore"), ("version", "v1")),
            (WorkloadPort(Port(14001), "web"),),
        ),
        TrafficTarget(
            PolicyKey(BOOKSTORE, "bookstore"),
            _identity("bookstore", "bookstore"),
            (_identity("bookbuyer", "bookbuyer"),),
            (Rule(RouteKind.HTTP, "bookstore-service-routes", ("books-bought", "buy-a-book")),),
        ),
        HTTPRouteGroup(
            PolicyKey(BOOKSTORE, "bookstore-service-routes"),
            (
                HTTPMatch(
                    "books-bought",
                    "/books-bought",
                    ("GET",),
                    (HeaderMatch("client-app", "bookbuyer"), HeaderMatch("user-agent", ".*-http-client/*.*")),
                ),
                HTTPMatch("buy-a-book", ".*a-book.*new", ("GET",)),
            ),
        ),
        TCPRoute(PolicyKey(WAREHOUSE, "mysql"), (Port(3306),)),
        TrafficSplit(
            PolicyKey(BOOKSTORE, "bookstore-split"),
            ServiceKey(BOOKSTORE, ServiceName("bookstore")),
            (Backend(ServiceName("bookstore"), 50), Backend(ServiceName("bookstore-v2"), 50)),
        ),
    ]


def test_every_object_of_the_bookstore_is_read_without_problems() -> None:
    """Each object has exactly the expected value."""
    text = Path(__file__).with_name(FILE).read_text()
    readings = [
        read(document.value, InFile(FILE, document.number, document.line)) for document in documents(text)
    ]
    assert [value for reading in readings for _, value in reading.objects] == _expected()
    assert [problem for reading in readings for problem in reading.problems] == []
