"""The cluster of these tests is real: its controllers control, its accounts may what they are granted."""

import json

import pytest

from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Resource
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.permissions import lines
from tools.real_parts.cluster import RunningCluster

READ = {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]}


def test_a_service_has_the_pods_that_run_as_its_endpoints(kubectl: Kubectl) -> None:
    """The controller makes the slice; a Pod that is not ready stands in it as one that is not."""
    kubectl.apply(objects.service("shop"), objects.pod("one", app="shop"), objects.pod("two", app="shop"))
    kubectl.status(objects.runs("one", "10.244.0.1"), objects.runs("two", "10.244.0.2", ready=False))
    label = "-lkubernetes.io/service-name=shop"

    def places(found: dict[str, list[dict[str, list[dict[str, object]]]]]) -> dict[str, bool]:
        endpoints = [each for one in found["items"] for each in one["endpoints"] or ()]
        return {str(each["addresses"]): bool(dict(each["conditions"])["ready"]) for each in endpoints}  # type: ignore[call-overload]

    kubectl.until(
        lambda found: places(found) == {"['10.244.0.1']": True, "['10.244.0.2']": False},
        "endpointslices",
        label,
    )


async def test_our_own_client_reads_what_kubectl_writes(api: Api, kubectl: Kubectl) -> None:
    """And kubectl what it writes, whose fields are its own."""
    kubectl.apply(objects.account("buyer"))
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    found = await api.get(accounts, kubectl.namespace, "buyer")
    assert found["metadata"]["name"] == "buyer"
    labels = {"metadata": {"labels": {"tier": "front"}}}
    await api.apply(accounts, kubectl.namespace, "buyer", labels, manager="tests")
    shown = kubectl.get("serviceaccount", "buyer", "--show-managed-fields")["metadata"]
    assert shown["labels"] == {"tier": "front"}
    assert "tests" in {each["manager"] for each in shown["managedFields"]}


def test_an_account_may_do_what_it_is_granted_and_the_log_says_so(
    shared_cluster: RunningCluster, accounts: Accounts, kubectl: Kubectl
) -> None:
    """What it is refused is in the audit log as well, with the verb and the resource."""
    reader = accounts.make("reader", [READ])
    theirs = Kubectl(kubectl.program, reader.kubeconfig, kubectl.cache, kubectl.namespace)
    assert theirs("get", "services") == ""
    refused = theirs.run("get", "pods")
    assert refused.status != 0
    assert 'cannot list resource "pods"' in refused.err
    said = {
        (each["objectRef"]["resource"], each["annotations"]["authorization.k8s.io/decision"])
        for each in lines(shared_cluster.place.audit)
        if each["user"]["username"] == reader.user and "objectRef" in each
    }
    assert {("services", "allow"), ("pods", "forbid")} <= said


def test_a_token_that_has_expired_is_refused(accounts: Accounts, kubectl: Kubectl) -> None:
    """One that is good is not."""
    reader = accounts.make("reader", [READ])
    by_file = Kubectl(kubectl.program, reader.kubeconfig_by_file, kubectl.cache, kubectl.namespace)
    reader.token_file.write_text(reader.token(-1))
    assert "Unauthorized" in (said := by_file.run("get", "services")).err or "logged in" in said.err
    reader.token_file.write_text(reader.token(600))
    assert by_file("get", "services") == ""


async def test_what_is_made_in_a_namespace_that_goes_has_none(
    api: Api, administrator: Kubectl, kubectl: Kubectl
) -> None:
    """It is refused with the status of what an account may not, which is not what is wrong."""
    held = {"name": "held", "finalizers": ["tests.meshwright.dev/held"]}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    administrator("delete", "namespace", kubectl.namespace, "--wait=false")
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    with pytest.raises(ApiError, match="being terminated") as caught:
        await api.create(accounts, kubectl.namespace, {"metadata": {"name": "late"}})
    assert caught.value.is_not_found
    free = {"metadata": {"finalizers": None}}
    kubectl("patch", "configmap", "held", "--type=merge", "-p", json.dumps(free))
