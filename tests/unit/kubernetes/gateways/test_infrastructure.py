"""Objects that run the proxies of a Gateway: a golden file, and names."""

import copy
from dataclasses import replace
from pathlib import Path

import yaml

from meshwright.kubernetes.gateways.infrastructure import Home, infrastructure, object_name, shortened
from meshwright.kubernetes.gateways.parameters import GatewayParameters, ServiceType
from meshwright.mesh.gateway.gateways import Infrastructure
from meshwright.mesh.origins import InCluster
from meshwright.specs.codes import Code
from meshwright.specs.reader import read
from tests.meshes import gateway as g

GOLDEN = Path(__file__).parent / "infrastructure.yaml"
LISTENERS = (g.listener(), g.listener("https", 443, protocol="HTTPS"), g.listener("more", 80, "shop.example"))
GATEWAY = replace(
    g.gateway("edge", *LISTENERS, namespace="shop"),
    uid="6f0c",
    infrastructure=Infrastructure((("team", "shop"),), (("note", "ours"),)),
)


def test_objects_equal_the_golden_file() -> None:
    """The whole of all objects; `--update-golden` is not needed for so few lines: edit the file."""
    parameters = GatewayParameters(3, ServiceType.CLUSTER_IP, {"requests": {"cpu": "100m"}})
    made = list(infrastructure(GATEWAY, parameters, Home("meshwright-system")))
    assert made == list(yaml.safe_load_all(GOLDEN.read_text()))


def test_labels_of_the_objects_are_known_to_the_readers() -> None:
    """The objects are read again from the cluster, and so are the EndpointSlices of the Service."""
    made = [copy.deepcopy(item) for item in infrastructure(GATEWAY, GatewayParameters(), Home("home"))]
    (service,) = (item for item in made if item["kind"] == "Service")
    labels = service["metadata"]["labels"] | {"kubernetes.io/service-name": object_name(GATEWAY)}
    made.append(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "edge-abc", "namespace": "shop", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [],
        }
    )
    problems = [problem for item in made for problem in read(item, InCluster("here", "1")).problems]
    assert [str(item) for item in problems if item.code == Code.UNKNOWN_OWN_NAME] == []


def test_service_has_the_ports_of_listener_sets() -> None:
    """A port that several listeners share is there once."""
    of_sets = (g.listener(port=80, hostname="set.example"), g.listener(port=5432, protocol="TCP"))
    made = infrastructure(GATEWAY, GatewayParameters(), Home("home"), of_sets)
    (service,) = (item for item in made if item["kind"] == "Service")
    assert [port["name"] for port in service["spec"]["ports"]] == ["tcp-80", "tcp-443", "tcp-5432"]


def test_single_proxy_has_no_disruption_budget() -> None:
    """A budget for one Pod would block every drain of a node."""
    kinds = [item["kind"] for item in infrastructure(GATEWAY, GatewayParameters(1), Home("home"))]
    assert kinds == ["ServiceAccount", "Deployment", "Service"]


def test_long_names_are_cut_and_stay_different() -> None:
    """GatewayNameMaximumLength: a Gateway may have a name of 253 characters, a label and a Service 63."""
    long = [f"{'a' * 252}{last}" for last in "xy"]
    names = [object_name(g.gateway(name)) for name in long]
    assert [len(name) for name in names] == [63, 63]
    assert names[0] != names[1]
    assert object_name(g.gateway("edge.public")) == "edge-public-meshwright"
    assert shortened("a" * 63) == "a" * 63
    assert shortened(f"{'a' * 53}.{'b' * 100}")[53] == "-"
