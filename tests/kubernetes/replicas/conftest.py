"""Fixtures of the faults: a store, and a mesh of several servers under load."""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from meshwright.kube.api import Api
from meshwright.kube.builtin import NAMESPACES, SECRETS
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from meshwright.records.kubernetes.definition import DEFINITION
from meshwright.records.kubernetes.store import CUSTODY
from tests.kubernetes.etcd.conftest import etcd_part as etcd_part
from tests.kubernetes.etcd.members import etcd
from tests.kubernetes.replicas.engines import Engine, EtcdEngine, KubernetesEngine
from tests.kubernetes.replicas.meshes import SERVERS, Mesh, running_mesh
from tests.kubernetes.replicas.rows import IS_LONG, Table
from tests.kubernetes.tools.kubectl import has_condition
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Typed
from tools.real_parts.cluster import RunningCluster, cluster

NEW_SERVERS: Final = ("d", "e", "f")
"""Servers that proxies know, and that only some tests start."""

ETCD_DEFAULTS: Final = ("--heartbeat-interval=100", "--election-timeout=1000")
"""etcd's own times in milliseconds. With shorter ones a busy machine elects leaders again and again."""

_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
ENGINES: Final = os.environ.get("MESHWRIGHT_STORES", "kubernetes,etcd" if IS_LONG else "kubernetes").split(
    ","
)
"""Stores that each fault is caused in."""

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def table() -> Iterator[Table]:
    """Return the table, which is printed at the end."""
    made = Table()
    yield made
    made.print()


@pytest.fixture(scope="session")
def store_cluster(
    request: pytest.FixtureRequest, parts: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCluster]:
    """Return the cluster of all tests, or in the long form one that these tests kill and restore."""
    if not IS_LONG:
        yield request.getfixturevalue("shared_cluster")
        return
    with cluster(tmp_path_factory.mktemp("store") / "cluster") as started:
        yield started


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    """Return an empty store with a network for each server."""
    servers = (*SERVERS, *NEW_SERVERS)
    if request.param == "etcd":
        request.getfixturevalue("etcd_part")
        with etcd(tmp_path / "etcd", count=3, flags=ETCD_DEFAULTS) as members:
            async with EtcdEngine.opened(members, tmp_path, servers) as made:
                yield made
        return
    store: RunningCluster = request.getfixturevalue("store_cluster")
    home = f"replicas-{next(_numbers)}"
    async with Api(find_connection(store.kubeconfig, "")) as api:
        await _define(api)
        await api.create(NAMESPACES, None, {"metadata": {"name": home}})
        await api.create(SECRETS, home, {"metadata": {"name": CUSTODY}, "type": "Opaque"})
        async with KubernetesEngine.opened(store, home, tmp_path, servers) as in_kubernetes:
            yield in_kubernetes
        for service in (store.etcd, store.api):
            if service.process.poll() is not None:
                service.again()  # a test that has killed it has failed: the others need not
        await api.delete(NAMESPACES, None, home)


async def _define(api: Api) -> None:
    """Install the kind of the records, unless it is there."""
    name = DEFINITION["metadata"]["name"]
    try:
        await api.create(_DEFINITIONS, None, DEFINITION)
    except ApiError as error:
        if not error.is_conflict:
            raise

    async def is_established() -> bool:
        return has_condition(dict(await api.get(_DEFINITIONS, None, name)), "Established")

    await until(is_established)


@pytest.fixture
async def mesh(engine: Engine, typed: Typed, tmp_path: Path, table: Table) -> AsyncIterator[Mesh]:
    """Return a running mesh of three servers."""
    async with running_mesh(engine, lambda _: typed, tmp_path, str(envoys.program()), table) as made:
        yield made


@pytest.fixture
async def surging_mesh(engine: Engine, typed: Typed, tmp_path: Path, table: Table) -> AsyncIterator[Mesh]:
    """Return a running mesh of three servers whose proxies know three more servers."""
    async with running_mesh(
        engine, lambda _: typed, tmp_path, str(envoys.program()), table, NEW_SERVERS
    ) as made:
        yield made
