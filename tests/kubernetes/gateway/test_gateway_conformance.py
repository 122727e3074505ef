"""The Gateway API's conformance suite for gateways, on a real node with the chart installed.

`make conformance-gateway` runs all tests of the features that the status of the GatewayClass claims, and
writes the report (docs/conformance).
"""

import os
import shutil
import sys
from importlib.metadata import version
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import pytest

from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from tests.kubernetes.gateway import suite
from tests.kubernetes.gateway.suite import GATEWAY_PROFILES, Choice, Implementation, Outcome
from tests.kubernetes.install.test_chart_on_node import HOME
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tools.real_parts.flags import SERVICES
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(7200),
    pytest.mark.usefixtures("helm_part"),
    pytest.mark.skipif(
        os.environ.get("MESHWRIGHT_SOAK") != "long", reason="make conformance-gateway runs it"
    ),
]

MODE: Final = "gateways"
REPORT: Final = f"standard-{version('meshwright')}-{MODE}-report.yaml"
CLASS: Final = "meshwright"
USABLE, UNUSABLE = str(ip_network(SERVICES)[20]), "192.0.2.1"
"""An address of the node's Services below those that Kubernetes chooses first, and one of documentation."""


def _class() -> tuple[Document, ...]:
    """Return a class whose gateways have one proxy and a Service without a load balancer.

    The control plane may read all Secrets and ConfigMaps, because the names of the suite's namespaces are
    not known before.
    """
    return (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "one", "namespace": HOME},
            "data": {"replicas": "1", "serviceType": "ClusterIP"},
        },
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": CLASS},
            "spec": {
                "controllerName": CONTROLLER_NAME,
                "parametersRef": {"group": "", "kind": "ConfigMap", "name": "one", "namespace": HOME},
            },
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "certificates"},
            "rules": [
                {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "watch"]}
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "certificates"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "certificates",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "meshwright", "namespace": HOME}],
        },
    )


def _claims_features(gateway_class: Document) -> bool:
    return bool(gateway_class.get("status", {}).get("supportedFeatures"))


def test_all_tests_for_gateways_pass(home: Node, node_administrator: Kubectl, tmp_path: Path) -> None:
    """All tests of the claimed features pass.

    With MESHWRIGHT_GATEWAY_REPORTS=FOLDER the report is written there; MESHWRIGHT_GATEWAY_TEST=NAME runs a
    single test.
    """
    node_administrator.apply(*_class())
    node_administrator.until(_claims_features, "gatewayclass.gateway.networking.k8s.io", CLASS)
    only = os.environ.get("MESHWRIGHT_GATEWAY_TEST", "")
    choice = Choice(
        GATEWAY_PROFILES,
        features=(),
        gateway_class=CLASS,
        mode=MODE,
        only=only,
        usable=USABLE,
        unusable=UNUSABLE,
    )
    report = tmp_path / REPORT
    results = suite.run(home, choice, report, Implementation(version("meshwright")), 6000)
    for outcome in (Outcome.PASSED, Outcome.FAILED):
        sys.stdout.write("".join(f"{outcome.name} {name}\n" for name in sorted(results.names(outcome))))
    if folder := os.environ.get("MESHWRIGHT_GATEWAY_REPORTS"):
        shutil.copyfile(report, Path(folder) / REPORT)
    assert results.names(Outcome.FAILED) == set()
