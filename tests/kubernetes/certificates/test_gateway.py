"""Test of a gateway's certificate in a Secret on a real API server, with a role for this Secret only."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from certs.keys.leaf import is_signed_by_bundle, read_leaf
from tests.kubernetes.conftest import namespaced
from tests.kubernetes.tools.accounts import Account, Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools import libyaml
from tests.tools.deadline import wait_until
from tests.tools.program import Program, Server

SECONDS: Final = 60.0
ROLES: Final = Path(__file__).parents[3] / "docs" / "kubernetes"
NAME: Final = "gateway-certificate"
NAMES: Final = ("edge.example.org", "gateway.example.org")


@pytest.fixture
def edge(administrator: Kubectl) -> Iterator[Kubectl]:
    """Return kubectl in the gateway's namespace."""
    with namespaced(administrator) as made:
        yield made


@pytest.fixture
def account(definitions: str, accounts: Accounts) -> Account:
    """Return the account of a control plane that may read the mesh, and no Secret."""
    del definitions
    roles = libyaml.load_all((ROLES / "rbac.yaml").read_text("utf-8"))
    rules = [rule for role in roles if role["kind"] == "ClusterRole" for rule in role["rules"]]
    return accounts.make("meshwright", rules)


def permit(account: Account, edge: Kubectl) -> None:
    """Grant access to this Secret with our role."""
    role, binding = libyaml.load_all((ROLES / "gateway.yaml").read_text("utf-8"))
    for item in (role, binding):
        item["metadata"]["namespace"] = edge.namespace
    binding["subjects"] = [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}]
    edge.apply(role, binding)


def config(*names: str, edge: str) -> dict[str, Any]:
    """Return a MeshConfig with a gateway."""
    gateway = {"subjectAltNames": list(names), "secret": {"name": NAME, "namespace": edge}}
    return {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "MeshConfig",
        "metadata": {"name": "osm-mesh-config"},
        "spec": {"certificate": {"ingressGateway": gateway}},
    }


def data(edge: Kubectl) -> dict[str, bytes]:
    """Return the data of the Secret, empty if it is missing."""
    result = edge.found("secret", NAME) or {"data": {}}
    return {name: base64.b64decode(item) for name, item in result["data"].items()}


def until(holds: Callable[[], object], server: Server) -> None:
    """Wait until the condition holds."""
    wait_until(holds, SECONDS, lambda: "\n".join(map(str, server.log()[-15:])))


def test_gateway_certificate_follows_the_mesh_config_and_the_root(
    account: Account, kubectl: Kubectl, edge: Kubectl, program: Program
) -> None:
    """A missing grant is reported, then the Secret is written.

    It follows a new root, new names and the removal of the MeshConfig, and a foreign Secret is not
    overwritten.
    """
    program.reads = (
        "--kubernetes",
        "--kubeconfig",
        str(account.kubeconfig),
        "--namespaces",
        kubectl.namespace,
    )
    server = program.serve("--set=kubernetes_reports=no")
    kubectl.apply(config(*NAMES, edge=edge.namespace))
    wrong = f"may not get secrets {edge.namespace}/{NAME}: RBAC grants no `get` on `secrets`"
    until(lambda: wrong in server.log_path.read_text(), server)
    until(lambda: server.metric('meshwright_problems{severity="error"}') == 1, server)

    permit(account, edge)
    until(lambda: data(edge), server)
    first = data(edge)
    secret = edge.get("secret", NAME)
    assert (secret["type"], sorted(first)) == ("kubernetes.io/tls", ["ca.crt", "tls.crt", "tls.key"])
    assert read_leaf(first["tls.crt"]).names.dns_names == NAMES
    assert is_signed_by_bundle(first["tls.crt"], first["ca.crt"])
    until(lambda: server.metric('meshwright_problems{severity="error"}') == 0, server)
    assert server.metric('meshwright_certificates_issued_total{issuer="built-in",kind="gateway"}') == 1

    words = ("certs", "rotate-root", "--state", str(program.state))
    assert program.run(*words)[0] == 0
    until(lambda: (result := data(edge)["ca.crt"]) != first["ca.crt"] and result.count(b"BEGIN") == 1, server)
    second = data(edge)
    assert read_leaf(second["tls.crt"]).serial != read_leaf(first["tls.crt"]).serial
    assert is_signed_by_bundle(second["tls.crt"], second["ca.crt"])

    kubectl.apply(config("other.example.org", edge=edge.namespace))
    until(lambda: read_leaf(data(edge)["tls.crt"]).names.dns_names == ("other.example.org",), server)
    kubectl("delete", "meshconfig", "osm-mesh-config")
    until(lambda: not data(edge), server)

    edge("create", "secret", "generic", NAME, "--from-literal=mine=mine")
    kubectl.apply(config(*NAMES, edge=edge.namespace))
    until(
        lambda: (
            f"Secret {edge.namespace}/{NAME} was not created by this control plane, so it is not overwritten"
            in server.log_path.read_text()
        ),
        server,
    )
    assert data(edge) == {"mine": b"mine"}
    for item in (first, second):
        assert item["tls.key"].decode().splitlines()[1] not in server.log_path.read_text()
    server.stop()
