"""Tests of kinds: their text, order, and equivalent kinds."""

import ast
import itertools
import re
from pathlib import Path

import pytest

import meshwright.mesh.kinds
from meshwright.mesh.kinds import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    ENDPOINTS,
    GATEWAY,
    POD,
    SERVICE,
    TCP_ROUTE,
    TRUST_BUNDLE,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey

PACKAGES = (
    "catalog",
    "certs",
    *(f"meshwright/{each}" for each in ("admin", "agent", "checks", "cli", "controller", "delivery", "mesh")),
    *(f"meshwright/{item}" for item in ("providers", "sidecars", "specs")),
)
# The second has names of features in the conformance suite, some of which are those of kinds.
SAID_ONCE = {"meshwright/mesh/kinds.py", "meshwright/mesh/gateway/features.py"}


@pytest.mark.parametrize(
    ("kind", "said", "full"),
    [
        (SERVICE, "Service", "Service"),
        (TCP_ROUTE, "TCPRoute", "TCPRoute.specs.smi-spec.io"),
        (DEPLOYMENT, "Deployment", "Deployment.apps"),
        (TRUST_BUNDLE, "trust bundle", "trust bundle"),
        (Kind("TCPRoute", "gateway.networking.k8s.io"), "TCPRoute.gateway.networking.k8s.io", None),
        (Kind("Service", "serving.knative.dev"), "Service.serving.knative.dev", None),
        (Kind("Deployment"), "Deployment", None),
        (GATEWAY, "Gateway", "Gateway.gateway.networking.k8s.io"),
    ],
)
def test_kind_is_printed_with_its_group_if_its_name_is_ambiguous(
    kind: Kind, said: str, full: str | None
) -> None:
    """Kinds of the mesh, and foreign kinds with a unique name, are printed without the group."""
    assert (str(kind), f"{kind}", kind.full) == (said, said, said if full is None else full)


def test_keys_are_sorted_by_the_name_of_their_kind() -> None:
    """The group has less weight, because it is usually not displayed."""
    kinds = [Kind("A", "z"), DEPLOYMENT, Kind("Deployment", "b"), SERVICE, TCP_ROUTE]
    keys = [ObjectKey(kind, Namespace("shop"), "db") for kind in kinds]
    assert all(former < latter for former, latter in itertools.pairwise(keys))


@pytest.mark.parametrize(("kind", "main"), [(POD, WORKLOAD), (ENDPOINTS, ENDPOINT_SLICE)])
def test_pod_and_endpoints_share_the_claim_of_their_main_kind(kind: Kind, main: Kind) -> None:
    """A Pod is a Workload and Endpoints are an EndpointSlice; kinds of other groups are not."""
    key, claim = (ObjectKey(item, Namespace("shop"), "db") for item in (kind, main))
    assert (key.claim, claim.claim) == (claim, claim)
    assert claim.forms() == (key, claim)
    theirs = ObjectKey(Kind(kind.name, "other.example.net"), Namespace("shop"), "db")
    assert (theirs.claim, theirs.forms()) == (theirs, (theirs,))


def test_code_names_kinds_by_constants_only() -> None:
    """A constant includes the group, so that a typing error cannot name another kind."""
    known = {var.name for var in vars(meshwright.mesh.kinds).values() if isinstance(var, Kind)}
    quoted = re.compile("|".join(f"[\"'](?:{name})[\"']" for name in sorted(known)))
    root = Path(meshwright.mesh.kinds.__file__).parents[2]
    result = {
        f"{module}: {item.value}"
        for package in PACKAGES
        for file in sorted((root / package).rglob("*.py"))
        if (module := str(file.relative_to(root))) not in SAID_ONCE
        if quoted.search(source := file.read_text(encoding="utf-8"))  # parsing all files takes a second
        for item in ast.walk(ast.parse(source))
        if isinstance(item, ast.Constant) and item.value in known and item.value[0].isupper()
    }
    assert result == {"meshwright/mesh/names.py: Namespace", "meshwright/sidecars/type_words.py: Secret"}, (
        "a NewType and Envoy's type are called so"
    )
