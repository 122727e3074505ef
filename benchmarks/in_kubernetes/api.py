"""Client for writing objects to a Kubernetes API: many in parallel at first, then single changes."""

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from benchmarks.in_kubernetes.objects import Document, Kind, Object
from benchmarks.processes.programs import BenchmarkError
from tools.real_parts.cluster import Cluster

WRITERS: Final = 8
"""Number of parallel connections for the first objects."""
PATIENCE: Final = 30.0
"""Maximum seconds until new resource definitions are served."""
IDLE: Final = 15.0
"""Seconds of rest after which the connection is opened again, because the server closes idle connections."""
_MERGE: Final = "application/merge-patch+json"
_DEFINITIONS: Final = Kind(
    "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"
)


class Api:
    """A persistent connection to the API server, for use by one thread."""

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        result = urlsplit(server)
        self._connection = http.client.HTTPSConnection(
            str(result.hostname), result.port, context=tls, timeout=60
        )
        self._used = time.monotonic()

    def create(self, one: Object) -> None:
        """Create an object, and then write its status if there is one."""
        self._ask("POST", one.kind.collection(one.namespace), one.document())
        if one.status is not None:
            self._ask("PATCH", f"{one.path}/status", {"status": one.status}, _MERGE)

    def merge(self, one: Object) -> None:
        """Merge an object's body into the existing object."""
        self._ask("PATCH", one.path, one.body, _MERGE)

    def delete(self, one: Object) -> None:
        """Delete an object without a grace period."""
        self._ask("DELETE", f"{one.path}?gracePeriodSeconds=0")

    def delete_all(self, kind: Kind, namespace: str) -> None:
        """Delete all objects of a kind in a namespace."""
        self._ask("DELETE", kind.collection(namespace))

    def list(self, kind: Kind, namespace: str) -> list[Document]:
        """Return all objects of a kind in a namespace."""
        items: list[Document] = self._ask("GET", kind.collection(namespace))["items"]
        return items

    def define(self, text: str) -> None:
        """Create the CustomResourceDefinitions in a YAML text."""
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            if document and document["kind"] == _DEFINITIONS.name:
                self._ask("POST", _DEFINITIONS.collection(""), document)

    def until_served(self, *kinds: Kind) -> None:
        """Wait until objects of these kinds can be written."""
        deadline = time.monotonic() + PATIENCE
        for kind in kinds:
            while not self._is_served(kind):
                if time.monotonic() > deadline:
                    raise BenchmarkError(f"{kind.name} is not served after {PATIENCE:.0f} s")
                time.sleep(0.05)

    def _is_served(self, kind: Kind) -> bool:
        self._connection.request("GET", f"{kind.group}/{kind.plural}?limit=1")
        answer = self._connection.getresponse()
        answer.read()
        return answer.status == http.client.OK

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask(
        self, method: str, path: str, body: Document | None = None, kind: str = "application/json"
    ) -> Any:  # noqa: ANN401 - JSON
        data = None if body is None else json.dumps(body)
        if time.monotonic() - self._used > IDLE:
            # `http.client` opens the connection again at the next request.
            self._connection.close()
        self._used = time.monotonic()
        self._connection.request(method, path, data, {"Content-Type": kind})
        answer = self._connection.getresponse()
        # The body is read in any case, because the connection is used again.
        said = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise BenchmarkError(f"{method} {path}: {answer.status} {said[:500].decode(errors='replace')}")
        return json.loads(said)


def create_all(cluster: Cluster, objects: Iterable[Object]) -> int:
    """Create objects with several connections, in any order; return their number."""
    several = list(objects)
    # Every writer gets objects of all kinds, so that all have about the same work.
    shares = [several[number::WRITERS] for number in range(WRITERS)]

    def write(share: list[Object]) -> None:
        with connection(cluster) as api:
            for item in share:
                api.create(item)

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(write, shares))
    return len(several)


@contextlib.contextmanager
def connection(cluster: Cluster) -> Iterator[Api]:
    """Open a connection to the API server, and close it at the end of the block."""
    api = Api(cluster.server, cluster.tls())
    try:
        yield api
    finally:
        api.close()
