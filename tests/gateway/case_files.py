"""Cases of `cases/*.yaml`: routes of the Gateway API, with expected answers and expected conditions.

`cases/README.md` describes the form of a file. Each case has a Service of its own, so all cases can be in one
mesh at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.tools import libyaml

Document = dict[str, Any]

FOLDER: Final = Path(__file__).parent / "cases"
_CASE: Final = {
    *("name", "why", "service", "ports", "routes", "objects", "requests", "status", "refused", "pending"),
    *("edit", "listeners"),
}
_EDIT: Final = {"routes", "objects", "requests", "status"}
_ROUTE: Final = {"kind", "name", "namespace", "created", "version", "generation", "labels"}
_CALL: Final = {
    *("from", "to", "port", "method", "path", "host", "headers", "grpc", "line", "sni", "count", "expect")
}
_EXPECTED: Final = {
    *("status", "by", "path", "paths", "host", "headers", "response", "location", "shares", "tries"),
    *("copies", "grpc", "closed", "port", "length"),
}


@dataclass(frozen=True)
class Call:
    """A request, or a connection, of a workload's application to a Service; `count` times.

    `service` is `<name>.<namespace>`; the caller `outside` calls the gateway instead. With `grpc`
    (`shop.Cart/Add`) it is a gRPC call; with `line` a TCP connection, in TLS for the server name `sni` if
    there is one.
    """

    caller: str
    service: str
    port: int
    method: str = "GET"
    path: str = "/"
    host: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    grpc: str = ""
    line: bool = False
    sni: str = ""
    count: int = 1
    expected: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the call as a person would write it."""
        if self.grpc:
            text = f"gRPC {self.grpc}"
        elif self.line:
            text = f"TLS {self.sni}" if self.sni else "TCP"
        else:
            text = f"{self.method} {self.path}"
        headers = "".join(f" {name}: {value}" for name, value in self.headers)
        host = f" for {self.host}" if self.host else ""
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{text}{host}{headers} from {self.caller} to {self.service}:{self.port}{times}"


@dataclass(frozen=True)
class Stage:
    """Objects, the calls with expected answers while they are in force, and the expected conditions."""

    documents: tuple[Document, ...]
    calls: tuple[Call, ...] = ()
    status: tuple[Document, ...] = ()


@dataclass(frozen=True)
class Case:
    """One case: what is there at first, and after an edit if there is one.

    `pending` is the reason why the case is not tried yet. `refused` are objects that a reader must refuse.
    `listeners` belong to the one gateway of all cases.
    """

    topic: str
    name: str
    first: Stage
    edited: Stage | None = None
    refused: bool = False
    pending: str = ""
    listeners: tuple[Document, ...] = ()

    def __str__(self) -> str:
        """Return `topic/name`."""
        return f"{self.topic}/{self.name}"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the first stage, and the one after the edit."""
        return (self.first,) if self.edited is None else (self.first, self.edited)

    @property
    def last(self) -> Stage:
        """Return the stage that stays."""
        return self.stages[-1]


def cases(folder: Path = FOLDER) -> tuple[Case, ...]:
    """Read all cases, sorted by file; no two may have objects in common."""
    result = tuple(case for file in sorted(folder.glob("*.yaml")) for case in _file(file))
    seen: set[tuple[str, str, str]] = set()
    for case in result:
        for item in case.first.documents:
            key = (item["kind"], item["metadata"]["namespace"], item["metadata"]["name"])
            assert key not in seen, f"{case}: another case has {key}"
            seen.add(key)
    return result


def _file(file: Path) -> Iterator[Case]:
    content = libyaml.load(file.read_text())
    assert set(content) <= {"topic", "ports", "pending", "cases"}, file
    for item in content["cases"]:
        yield _case(file.stem, content, item)


def _case(topic: str, shared: Document, item: Document) -> Case:
    name: str = item["name"]
    _only(item, _CASE, f"{topic}/{name}")
    service: str = item.get("service", name)
    ports: list[str] = item.get("ports") or shared.get("ports") or ["web", "other"]
    listeners: tuple[Document, ...] = tuple(item.get("listeners", ()))
    # A case with another Service has its manifest among the objects, or is about a missing Service.
    own = (default_service(service, ports),) if service == name else ()

    def stage(given: Document) -> Stage:
        routes = (
            _route(name, service, number, route, listeners)
            for number, route in enumerate(given.get("routes", ()))
        )
        return Stage(
            documents=(*own, *map(_namespaced, given.get("objects", ())), *routes),
            calls=tuple(_call(f"{topic}/{name}", service, call) for call in given.get("requests", ())),
            status=tuple(given.get("status", ())),
        )

    if "edit" in item:
        _only(item["edit"], _EDIT, f"{topic}/{name}")
    return Case(
        topic=topic,
        name=name,
        first=stage(item),
        edited=stage({**item, "requests": (), "status": (), **item["edit"]}) if "edit" in item else None,
        refused=item.get("refused", False),
        pending=str(item.get("pending", shared.get("pending", ""))),
        listeners=listeners,
    )


GATEWAY: Final[Document] = {"name": "front", "namespace": "shop"}
"""The gateway of all cases with listeners."""

PORTS: Final[Mapping[str, Document]] = {
    "web": {"name": "web", "port": 80, "targetPort": 8080, "appProtocol": "http"},
    "other": {"name": "other", "port": 8080, "targetPort": 8081, "appProtocol": "http"},
    "grpc": {"name": "grpc", "port": 7070, "targetPort": 50051, "appProtocol": "kubernetes.io/h2c"},
    "tcp": {"name": "tcp", "port": 9000, "targetPort": 9000, "appProtocol": "tcp"},
    "tls": {"name": "tls", "port": 9443, "targetPort": 9443, "appProtocol": "tls"},
    "secure": {"name": "secure", "port": 443, "targetPort": 8080, "appProtocol": "http"},
}
"""The ports that Services of cases have, by name."""


def default_service(name: str, ports: list[str], selector: str = "v1", namespace: str = "shop") -> Document:
    """Return a Service for the workload with the label `selector`."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {selector: "yes"}, "ports": [dict(PORTS[port]) for port in ports]},
    }


def _namespaced(item: Document) -> Document:
    metadata = {"namespace": "shop", **item["metadata"]}
    return {**item, "metadata": metadata}


def _route(case: str, service: str, number: int, item: Document, listeners: tuple[Document, ...]) -> Document:
    """Return a manifest: what is missing is an HTTPRoute of the shop for port 80 of the case's Service.

    In a case with listeners the parents are these.
    """
    metadata: Document = {
        "name": item.get("name", f"{case}-{number}" if number else case),
        "namespace": item.get("namespace", "shop"),
        "generation": item.get("generation", 1),
        **({"creationTimestamp": item["created"]} if "created" in item else {}),
    }
    kind = item.get("kind", "HTTPRoute")
    port = {"GRPCRoute": 7070, "TCPRoute": 9000, "TLSRoute": 9443}.get(kind, 80)
    parents: list[Document] = [{"kind": "Gateway", **GATEWAY, "sectionName": at["name"]} for at in listeners]
    if not listeners:
        parents = [{"group": "", "kind": "Service", "namespace": "shop", "name": service, "port": port}]
    given = {key: value for key, value in item.items() if key not in _ROUTE}
    return {
        "apiVersion": f"gateway.networking.k8s.io/{item.get('version', 'v1')}",
        "kind": kind,
        "metadata": metadata,
        "spec": {"parentRefs": parents, **given},
    }


def _call(case: str, service: str, item: Document) -> Call:
    _only(item, _CALL, case)
    _only(item["expect"], _EXPECTED, case)
    to = item.get("to", service)
    grpc, tls = item.get("grpc", ""), item.get("sni", "")
    port = 7070 if grpc else 9443 if tls else 9000 if item.get("line") else 80
    return Call(
        caller=item.get("from", "client"),
        service=to if "." in to else f"{to}.shop",
        port=item.get("port", port),
        method=item.get("method", "GET"),
        path=item.get("path", "/"),
        host=item.get("host", ""),
        headers=tuple(_headers(item.get("headers", {}))),
        grpc=grpc,
        line=bool(item.get("line") or tls),
        sni=tls,
        count=item.get("count", 1),
        expected=item["expect"],
    )


def _headers(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        for text in value if isinstance(value, list) else [value]:
            yield name, str(text)


def _only(item: Document, known: set[str], case: str) -> None:
    assert item.keys() <= known, f"{case}: unknown fields {sorted(item.keys() - known)}"
