"""Writing objects to a Kubernetes API: many at once to begin with, one after the other as changes."""

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
"""Connections that write at once."""
PATIENCE: Final = 30.0
"""Seconds in which new definitions are served."""
IDLE: Final = 15.0
"""Seconds of rest after which a connection is opened anew: the server ends those that rest for long."""
_MERGE: Final = "application/merge-patch+json"
_DEFINITIONS: Final = Kind(
    "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"
)


class Api:
    """One connection, kept open; not for several threads."""

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        found = urlsplit(server)
        self._connection = http.client.HTTPSConnection(
            str(found.hostname), found.port, context=tls, timeout=60
        )
        self._used = time.monotonic()

    def create(self, one: Object) -> None:
        """Create an object, and then its status if it has one."""
        self._ask("POST", one.kind.collection(one.namespace), one.document())
        if one.status is not None:
            self._ask("PATCH", f"{one.path}/status", {"status": one.status}, _MERGE)

    def merge(self, one: Object) -> None:
        """Put an object's body into the one that is there."""
        self._ask("PATCH", one.path, one.body, _MERGE)

    def delete(self, one: Object) -> None:
        """Delete an object, at once."""
        self._ask("DELETE", f"{one.path}?gracePeriodSeconds=0")

    def delete_all(self, kind: Kind, namespace: str) -> None:
        """Delete all objects of a kind in a namespace."""
        self._ask("DELETE", kind.collection(namespace))

    def define(self, text: str) -> None:
        """Create the definitions of a file."""
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            if document and document["kind"] == _DEFINITIONS.name:
                self._ask("POST", _DEFINITIONS.collection(""), document)

    def until_served(self, *kinds: Kind) -> None:
        """Wait until these kinds can be written."""
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
            self._connection.close()  # the next request opens it
        self._used = time.monotonic()
        self._connection.request(method, path, data, {"Content-Type": kind})
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise BenchmarkError(f"{method} {path}: {answer.status} {said[:500].decode(errors='replace')}")
        return json.loads(said)


def create_all(cluster: Cluster, objects: Iterable[Object]) -> int:
    """Create objects with several writers, in no order; return how many they were."""
    several = list(objects)
    shares = [several[number::WRITERS] for number in range(WRITERS)]

    def write(share: list[Object]) -> None:
        with connection(cluster) as api:
            for each in share:
                api.create(each)

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(write, shares))
    return len(several)


@contextlib.contextmanager
def connection(cluster: Cluster) -> Iterator[Api]:
    """Open a connection, and close it with the block."""
    api = Api(cluster.server, cluster.tls())
    try:
        yield api
    finally:
        api.close()
