"""Raw requests to an API server, with its warnings, for details that kubectl and clients hide."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from ssl import SSLContext
from typing import Any, Final, Self
from urllib.parse import urlsplit

from meshwright.mesh.kinds import Kind
from meshwright.specs.reference.crds import plural_of
from tests.tools.deadline import wait_until
from tools.real_parts.cluster import Cluster, RunningCluster

PATIENCE: Final = 60.0
JSON: Final = "application/json"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
STRICT: Final = "fieldValidation=Strict"
DRY: Final = f"dryRun=All&{STRICT}"


@dataclass(frozen=True, slots=True)
class Answer:
    """An API server's response: status, body and warnings."""

    status: int
    body: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """The reason of a refusal."""
        return str(self.body.get("message", ""))


@dataclass(slots=True)
class Asking:
    """The administrator's requests, over connections that are kept until the end of a context."""

    cluster: Cluster
    _free: list[HTTPSConnection] = field(default_factory=list)
    _tls: SSLContext | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._free:
            each.close()

    def __call__(
        self, method: str, path: str, body: object = None, content: str = JSON, accept: str = JSON
    ) -> Answer:
        """Send a request and return the response; several threads may do so."""
        given = None if body is None else json.dumps(body)
        headers = {"Content-Type": content, "Accept": accept}
        while True:
            connection, is_used = self._taken()
            try:
                connection.request(method, path, given, headers)
                answer = connection.getresponse()
                said = _read(answer.read())
                break
            except (OSError, HTTPException):
                connection.close()
                if not is_used:  # the API server may have closed an idle one
                    raise
        self._free.append(connection)
        warnings = [each for name, each in answer.getheaders() if name.lower() == "warning"]
        return Answer(answer.status, said, tuple(warnings))

    def _taken(self) -> tuple[HTTPSConnection, bool]:
        """Return a connection, and whether it was used before."""
        try:
            return self._free.pop(), True
        except IndexError:
            return self._connection(), False

    def _connection(self) -> HTTPSConnection:
        """Return a new connection, with a socket of the network namespace of the cluster, if it has one."""
        if self._tls is None:
            self._tls = self.cluster.tls()
        netloc = urlsplit(self.cluster.server).netloc
        made = HTTPSConnection(netloc, context=self._tls, timeout=PATIENCE)
        if isinstance(self.cluster, RunningCluster) and self.cluster.inside is not None:
            self.cluster.inside.do(made.connect)
        return made

    def create(self, document: Mapping[str, Any], query: str = STRICT) -> Answer:
        """Create an object."""
        return self("POST", f"{collection(document)}?{query}", document)

    def until(self, path: str, holds: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Get an object until it meets the condition."""
        found: Mapping[str, Any] = {}

        def is_there() -> bool:
            nonlocal found
            found = self("GET", path).body
            return holds(found)

        wait_until(is_there, PATIENCE, lambda: found)
        return found


def _read(body: bytes) -> Mapping[str, Any]:
    """Return a response's JSON; a text, such as that of an unknown path, is its message."""
    try:
        return dict(json.loads(body or b"{}"))
    except ValueError:
        return {"message": body.decode(errors="replace").strip()}


def collection(document: Mapping[str, Any]) -> str:
    """Return the path of the objects of a document's kind, in its namespace."""
    namespace = document.get("metadata", {}).get("namespace")
    where = f"/namespaces/{namespace}" if namespace else ""
    plural = plural_of(Kind(str(document["kind"])))
    root = "apis" if "/" in document["apiVersion"] else "api"
    return f"/{root}/{document['apiVersion']}{where}/{plural}"


def path(document: Mapping[str, Any], api_version: str = "") -> str:
    """Return an object's path, optionally in another version."""
    asked = {**document, "apiVersion": api_version or document["apiVersion"]}
    return f"{collection(asked)}/{document['metadata']['name']}"


def established(asking: Asking, *definitions: Mapping[str, Any]) -> None:
    """Apply definitions without a warning, and wait until they are served."""
    for each in definitions:
        at = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{each['metadata']['name']}"
        query = f"fieldManager=test&force=true&{STRICT}"
        answer = asking("PATCH", f"{at}?{query}", each, "application/apply-patch+yaml")
        assert (answer.status in (200, 201), answer.warnings) == (True, ()), (
            answer,
            each["metadata"]["name"],
        )
    for each in definitions:
        at = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{each['metadata']['name']}"
        found = asking.until(at, lambda found: _conditions(found).get("Established") == "True")
        assert _conditions(found).get("NamesAccepted") == "True"
        assert "NonStructuralSchema" not in _conditions(found)


def _conditions(found: Mapping[str, Any]) -> Mapping[str, str]:
    return {each["type"]: each["status"] for each in found.get("status", {}).get("conditions") or ()}
