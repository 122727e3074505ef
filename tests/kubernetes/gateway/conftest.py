"""The cluster of the tests of Gateway API objects, with the definitions of the standard channel."""

from collections.abc import Iterator

import pytest

from tests.kubernetes.conftest import skip_without
from tests.kubernetes.gateway.installation import installed
from tests.kubernetes.tools.api_requests import Asking, established
from tests.kubernetes.tools.gateway_definitions import KINDS, definition
from tests.kubernetes.tools.kubectl import Kubectl
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.node import Node
from tools.real_parts.parts import GATEWAY_DEFINITIONS

LATER = "tlsroutes"
"""Kind whose definition is installed by the tests of its objects."""


@pytest.fixture(scope="session")
def own_cluster(parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Return a cluster without definitions."""
    skip_without(GATEWAY_DEFINITIONS)
    with cluster(tmp_path_factory.mktemp("gateway") / "cluster") as made:
        yield made


@pytest.fixture(scope="module")
def home(
    real_node: Node, node_administrator: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    """Return the node with the chart and the definitions, for the tests of one file.

    The chart's webhook would inject the Pods of all later tests too.
    """
    with installed(real_node, node_administrator, tmp_path_factory.mktemp("gateway-node")):
        yield real_node


@pytest.fixture(scope="session")
def asking(own_cluster: RunningCluster) -> Iterator[Asking]:
    """Return a client for the API server, with the definitions except that of TLSRoute."""
    with Asking(own_cluster) as asking:
        established(asking, *(definition(plural) for plural in KINDS if plural != LATER))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        assert asking.create(namespace).status == 201
        yield asking
