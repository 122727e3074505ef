"""Fixtures of the Kubernetes tests: an API server, namespaces, their administrator, other accounts.

`make test-kubernetes` builds the parts. Where these are missing, the tests are skipped with a reason; with
MESHWRIGHT_PARTS=required they fail instead.
"""

import itertools
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from certs.issuers.cert_manager.issuer import CertManagerIssuer
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.mesh.identity import ProxyName
from tests.kubernetes.tools import containers, objects
from tests.kubernetes.tools import kubectl as tool
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.api_kinds import Kinds
from tests.kubernetes.tools.api_requests import Asking
from tests.kubernetes.tools.certificate_issuers import Opened, Signing
from tests.kubernetes.tools.helm import Helm
from tests.kubernetes.tools.kubectl import Document, Kubectl, has_condition
from tests.kubernetes.tools.leftovers import until_nothing_is_left
from tests.kubernetes.tools.objects import NODE
from tests.kubernetes.tools.shop import opened
from tests.tools import envoy
from tests.tools.forked_cli import Command, Typed
from tests.tools.program import Program
from tools.real_parts.building import chosen_kubernetes, is_built, shared
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.node import Node, lacking, node
from tools.real_parts.parts import API_SERVER, CERT_MANAGER, COLLECTOR, CONTROLLERS, ETCD, HELM, Part
from tools.real_parts.parts import NODE as NODE_PARTS
from tools.real_parts.processes import Service
from tools.real_parts.signing import RESOURCES, cert_manager

LONGEST: Final = (
    "test_upgraded",
    "test_shared_store",
    "test_servers",
    "test_short_faults",
    "test_reports",
    "test_peers",
    "test_api_server",
    "test_rotation",
    "test_client",
    "test_bad_input",
    "test_crds",
    "test_registration",
    "test_webhook",
    "test_pod_roots",
    "test_migrate",
    "test_injection_webhook",
    "test_gateway",
    "test_foreign_definitions",
    "test_cert_manager",
    "test_enrolment",
    "test_rbac",
)
"""Names of the files of tests without a node, those that take longest first."""
LONGEST_ON_NODE: Final = (
    "test_bookstore",
    "test_node",
    "test_chart_on_node",
    "test_two_servers_on_node",
    "test_conformance_suite",
    "test_cni",
)
"""Names of the files of tests with a node, in the order in which two processes take about the same time.

A process is given its next file while two tests are left of the one before. The process of the bookstore,
which is a single test, therefore has test_chart_on_node next, and the other one the rest.
"""

_numbers = itertools.count(1)


def _missing(*more: Part) -> str:
    wanted = map(chosen_kubernetes().own, (ETCD, API_SERVER, CONTROLLERS, *more))
    parts = [f"{part.name} {part.version}" for part in wanted if not is_built(part)]
    return ", ".join((*parts, *([] if tool.program() else ["kubectl"])))


def _skip(said: str) -> None:
    """Skip the test, or fail if all parts are required."""
    if os.environ.get("MESHWRIGHT_PARTS") == "required":
        pytest.fail(said)
    pytest.skip(said)


def skip_without(part: Part) -> None:
    """Require one part, which needs no cluster."""
    if not is_built(part):
        _skip(f"there is no {part.name}: `make test-kubernetes` builds it, with Go (https://go.dev)")


@pytest.hookimpl(tryfirst=True)  # before `-m` is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the cluster with a node, and put the longest files first.

    Each process takes whole files, in this order: the short ones fill the end. All others come
    in the order of their names, whichever folder has them.
    """
    here = Path(__file__).parent
    ranks = {name: rank for rank, name in enumerate((*LONGEST_ON_NODE, *LONGEST))}
    for item in items:
        if item.path.is_relative_to(here) and "real_node" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.node)
    result = [item for item in items if item.path.is_relative_to(here)]
    others = [item for item in items if not item.path.is_relative_to(here)]
    result.sort(key=lambda item: (ranks.get(item.path.stem, len(ranks)), item.path.name))
    items[:] = [*result, *others]


@pytest.fixture(scope="session")
def parts() -> None:
    """Require the parts of a cluster; without them, dependent tests are skipped or fail."""
    if missing := _missing():
        _skip(f"there is no {missing}: `make test-kubernetes` builds them, with Go (https://go.dev)")


@pytest.fixture(scope="session")
def node_parts(parts: None) -> None:
    """Require the parts of a node."""
    if missing := _missing(*NODE_PARTS):
        _skip(f"there is no {missing}: `make test-kubernetes` builds them, with Go (https://go.dev)")
    if missing := lacking():
        _skip(f"a node needs {missing}: `make test-kubernetes` installs what Debian has, for root")


@pytest.fixture(scope="session")
def collector_part() -> None:
    """Require OpenTelemetry's collector, which needs no cluster."""
    skip_without(COLLECTOR)


@pytest.fixture(scope="session")
def helm_part() -> None:
    """Require Helm, which needs no cluster."""
    skip_without(HELM)


@pytest.fixture
def helm(helm_part: None, tmp_path: Path) -> Helm:
    """Return Helm without a cluster."""
    return Helm(tmp_path)


@pytest.fixture(scope="session")
def shared_cluster(parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Return the cluster of all tests, with controllers, and a Node that Pods may be assigned to."""
    with cluster(tmp_path_factory.mktemp("kubernetes") / "cluster", controlled=True) as started:
        yield started


@pytest.fixture(scope="session")
def administrator(
    shared_cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """Return the administrator's kubectl, without a namespace."""
    folder = tmp_path_factory.mktemp("kubectl")
    with Asking(shared_cluster) as ask:
        made = Kubectl(tool.program() or "", shared_cluster.kubeconfig, folder, kinds=Kinds(ask))
        made.apply(objects.node())
        assert NODE in made("get", "nodes", "-o", "name")
        yield made


@pytest.fixture(scope="session")
def real_node(node_parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Return the real node of all tests; at the end nothing of it may be left."""
    folder = tmp_path_factory.mktemp("node") / "n"
    with node(folder) as started:
        started.load(containers.mesh(envoy.program() or ""))
        yield started
    until_nothing_is_left(folder, started.inside.group)


@pytest.fixture(scope="session")
def node_administrator(real_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """Return the kubectl of the administrator of the node's cluster, without a namespace."""
    made = real_node.cluster
    folder = tmp_path_factory.mktemp("node-kubectl")
    with Asking(made) as ask:
        yield Kubectl(tool.program() or "", made.kubeconfig, folder, enter=made.enter, kinds=Kinds(ask))


@pytest.fixture(scope="session")
def cert_manager_kinds(administrator: Kubectl) -> None:
    """Install cert-manager's kinds and the namespace of its Secrets, without a controller."""
    if missing := _missing(CERT_MANAGER):
        _skip(f"there is no {missing}: `make test-kubernetes` builds it, with Go (https://go.dev)")
    kinds = ("certificaterequests", "clusterissuers", "issuers")
    files = [f"-f={shared(CERT_MANAGER)}/cert-manager.io_{kind}.yaml" for kind in kinds]
    administrator("apply", "--server-side", *files)
    administrator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": RESOURCES}})
    administrator.until(_are_established, "crd")


@pytest.fixture(scope="session")
def controllers(shared_cluster: RunningCluster, cert_manager_kinds: None) -> Iterator[Service]:
    """Return cert-manager's controllers, which then run for all later tests."""
    del cert_manager_kinds
    with cert_manager(shared_cluster) as started:
        yield started


@contextmanager
def namespaced(administrator: Kubectl) -> Iterator[Kubectl]:
    """Make a namespace; its deletion at the end is not waited for."""
    name = f"test-{next(_numbers)}"
    administrator.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    made = replace(administrator, namespace=name)
    # No Pod is admitted before; controllers ask an API server that was away after half a minute and more.
    made.until_there("serviceaccount", "default")
    yield made
    # At once, because a MeshConfig is for the whole mesh. Kubernetes empties the namespace seconds later, and
    # not at all as long as a Pod remains that no kubelet ends.
    administrator.delete_at(f"/apis/config.openservicemesh.io/v1alpha2/namespaces/{name}/meshconfigs")
    administrator.delete("namespace", name)


@pytest.fixture
def namespace(kubectl: Kubectl) -> str:
    """Return the name of the test's namespace."""
    return kubectl.namespace


@pytest.fixture
def kubectl(shared_cluster: RunningCluster, administrator: Kubectl) -> Iterator[Kubectl]:
    """Return the administrator's kubectl, in the test's namespace."""
    with namespaced(administrator) as made:
        yield made
        if shared_cluster.api.process.poll() is not None:
            shared_cluster.api.again()  # a test that has killed it has failed: the others need not


@pytest.fixture(scope="session")
def definitions(administrator: Kubectl, typed: Typed, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install our kinds like a new user; return their manifests."""
    return define(administrator, typed, tmp_path_factory.mktemp("crds"))


def define(administrator: Kubectl, typed: Typed, folder: Path) -> str:
    """Install our kinds in a cluster."""
    done = typed.run(Command(folder, ("crds",), {}), 60)
    assert done.returncode == 0, done.stderr
    administrator("apply", "--server-side", "-f", "-", given=done.stdout)
    administrator.until(_are_established, "crd")  # `kubectl wait` fails where there are no conditions yet
    return done.stdout


def _are_established(result: Document) -> bool:
    return all(has_condition(item, "Established") for item in result["items"])


@pytest.fixture
async def api(shared_cluster: RunningCluster) -> AsyncIterator[Api]:
    """Return our own API client, as the administrator."""
    async with Api(find_connection(shared_cluster.kubeconfig, "")) as made:
        yield made


@pytest.fixture
def accounts(shared_cluster: RunningCluster, kubectl: Kubectl, tmp_path: Path) -> Accounts:
    """Return a factory of service accounts in the test's namespace."""
    return Accounts(shared_cluster, kubectl, tmp_path / "accounts")


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """Return a program without sources."""
    made = Program(tmp_path / "state", tmp_path / "files", typed)
    made.reads = ()
    yield made
    made.end()


@pytest.fixture
def buyer(kubectl: Kubectl, definitions: str) -> ProxyName:
    """Create a shop; return the name of the buyer's proxy."""
    del definitions
    return opened(kubectl)


@pytest.fixture
def signing(cert_manager_kinds: None, shared_cluster: RunningCluster, namespace: str) -> Iterator[Signing]:
    """Return a namespace for certificate requests, without controllers unless the test requires them."""
    del cert_manager_kinds
    with Asking(shared_cluster) as ask:
        yield Signing(ask, shared_cluster.kubeconfig, namespace)


@pytest.fixture(name="opened")
def closed_at_the_end(aside: ThreadPoolExecutor) -> Iterator[Opened]:
    """Return a function that registers an issuer for closing at the end of the test."""
    del aside
    kept: list[CertManagerIssuer] = []

    def keep(made: CertManagerIssuer) -> CertManagerIssuer:
        kept.append(made)
        return made

    yield keep
    for cert_manager_issuer in kept:
        cert_manager_issuer.close()


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Return a thread for calls that block while the test goes on."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
