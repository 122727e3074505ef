"""Manifests in the shape that OSM publishes for its bookstore are read as they are."""

from pathlib import Path

from mesh.identity import ServiceIdentity
from mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from mesh.objects import MeshObject, NamespaceObject, ObjectKey, Origin
from mesh.policy import (
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
from mesh.service import Protocol, Service, ServiceKey, ServicePort
from providers.documents import documents
from smi.reader import read

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


def test_everything_in_the_bookstore_is_read_and_the_deployment_is_reported() -> None:
    """Every object has exactly the expected value, and the only problem is the unused Deployment."""
    text = Path(__file__).with_name(FILE).read_text()
    readings = [
        read(document.value, Origin(FILE, document.number, document.line)) for document in documents(text)
    ]
    assert [value for reading in readings for _, value in reading.objects] == _expected()
    problems = [problem for reading in readings for problem in reading.problems]
    assert [str(problem) for problem in problems] == [
        (
            "MW1020 bookstore.yaml:44 (document 5): Deployment bookstore/bookstore: kind: "
            "Deployment is not used: it plays no part in the mesh"
        )
    ]
    assert readings[4].key == ObjectKey("Deployment", BOOKSTORE, "bookstore")
