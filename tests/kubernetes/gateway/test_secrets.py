"""Tests of Secrets for gateways on a real API server: a Role with their names is enough."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.kinds import GATEWAY_API, SECRET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.kubernetes.reading.test_source import Looking, do, looking
from tests.kubernetes.tools import kubectl as tool
from tests.kubernetes.tools.accounts import Accounts, Rule
from tests.kubernetes.tools.api_kinds import Kinds
from tests.kubernetes.tools.api_requests import Asking
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools.tls_secrets import EdgePair, self_signed
from tools.real_parts.cluster import RunningCluster

NAMESPACE: Final = "certificates"
WORDS: Final = ("list", "watch")
KINDS: Final[Sequence[Rule]] = (
    {
        "apiGroups": [""],
        "resources": ["namespaces", "services", "pods", "serviceaccounts"],
        "verbs": WORDS,
    },
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": WORDS},
    {"apiGroups": [GATEWAY_API], "resources": ["*"], "verbs": WORDS},
)
"""What the chart permits everywhere, as far as this cluster has the kinds."""
API_VERSION: Final = f"{GATEWAY_API}/v1"


def _gateway(secret: str) -> dict[str, Any]:
    tls = {"certificateRefs": [{"name": secret}]}
    listener = {"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls}
    spec = {"gatewayClassName": "meshwright", "listeners": [listener]}
    return {"apiVersion": API_VERSION, "kind": "Gateway", "metadata": {"name": "public"}, "spec": spec}


def _secret(pair: EdgePair, name: str) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load(pair.manifest(name, NAMESPACE))
    return result


def _shown(look: Looking, name: str) -> bytes | None:
    found = look.source.objects().get(ObjectKey(SECRET, Namespace(NAMESPACE), name))
    if found is None:
        return None
    assert isinstance(found.value, TlsSecret)
    return found.value.chain_pem


async def test_role_with_the_name_of_the_secret_is_enough(
    own_cluster: RunningCluster, asking: Asking, tmp_path: Path
) -> None:
    """Without it there is a problem; another Secret stays unreadable, and a changed one is in force."""
    administrator = Kubectl(
        tool.program() or "", own_cluster.kubeconfig, tmp_path / "kubectl", kinds=Kinds(asking)
    )
    administrator.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": API_VERSION,
            "kind": "GatewayClass",
            "metadata": {"name": "meshwright"},
            "spec": {"controllerName": CONTROLLER_NAME},
        },
    )
    kubectl = Kubectl(
        administrator.program, administrator.kubeconfig, administrator.cache, NAMESPACE, kinds=Kinds(asking)
    )
    first, second, other = (self_signed(f"{name}.example") for name in ("first", "second", "other"))
    kubectl.apply(_gateway("shown"), _secret(first, "shown"), _secret(other, "other"))
    account = Accounts(own_cluster, kubectl, tmp_path / "accounts").make("mesh", KINDS)
    async with looking(own_cluster, NAMESPACE, account.kubeconfig) as look:
        (problem,) = (item for item in look.source.problems() if "secrets shown" in str(item.origin))
        assert "permit `list` and `watch` by a Role of this namespace" in problem.expected
        role = ("--verb=list,watch", "--resource=secrets", "--resource-name=shown")
        await do(kubectl, "create", "role", "shown", *role)
        bound = ("--role=shown", f"--serviceaccount={NAMESPACE}:mesh")
        await do(kubectl, "create", "rolebinding", "shown", *bound)
        await look.until(lambda: _shown(look, "shown") == first.chain)
        assert not [item for item in look.source.problems() if "secrets" in str(item.origin)]
        await do(kubectl.apply, _secret(second, "shown"))
        await look.until(lambda: _shown(look, "shown") == second.chain)
        await do(kubectl.apply, _gateway("other"))
        await look.until(lambda: any("secrets other" in str(item.origin) for item in look.source.problems()))
        assert (_shown(look, "shown"), _shown(look, "other")) == (None, None)
        await asyncio.to_thread(kubectl.delete, "gateway", "public")
        await look.until(lambda: not any("secrets" in str(item.origin) for item in look.source.problems()))
