"""Fixtures of the faults: a store, and a mesh of several servers under load."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from meshwright.records.kubernetes.definition import DEFINITION
from tests.kubernetes.records.conftest import NAMESPACES
from tests.kubernetes.replicas.engines import Engine, KubernetesEngine
from tests.kubernetes.replicas.meshes import SERVERS, Mesh, running_mesh
from tests.kubernetes.replicas.rows import IS_LONG, Table
from tests.kubernetes.tools.kubectl import has_condition
from tests.tools import envoy as envoys
from tests.tools.deadline import until
from tests.tools.forked_cli import Typed
from tools.real_parts.cluster import RunningCluster, cluster

NEW_SERVERS: Final = ("d", "e", "f")
"""Servers that proxies know, and that only some tests start."""

_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
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


@pytest.fixture
async def engine(store_cluster: RunningCluster, tmp_path: Path) -> AsyncIterator[Engine]:
    """Return an empty store with a relay for each server."""
    home = f"replicas-{next(_numbers)}"
    async with Api(find_connection(store_cluster.kubeconfig, "")) as api:
        await _define(api)
        await api.create(NAMESPACES, None, {"metadata": {"name": home}})
        servers = (*SERVERS, *NEW_SERVERS)
        async with KubernetesEngine.opened(store_cluster, home, tmp_path, servers) as made:
            yield made
        for service in (store_cluster.etcd, store_cluster.api):
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
