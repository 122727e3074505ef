"""Tests of the cluster of these tests: its controllers work, and accounts have exactly their grants."""

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


def test_service_has_its_running_pods_as_endpoints(kubectl: Kubectl) -> None:
    """The controller creates the slice, in which an unready Pod is not ready."""
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


async def test_own_client_and_kubectl_read_each_other(api: Api, kubectl: Kubectl) -> None:
    """Our client reads an object that kubectl wrote.

    kubectl shows the fields that our client applied, and their manager.
    """
    kubectl.apply(objects.account("buyer"))
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    found = await api.get(accounts, kubectl.namespace, "buyer")
    assert found["metadata"]["name"] == "buyer"
    labels = {"metadata": {"labels": {"tier": "front"}}}
    await api.apply(accounts, kubectl.namespace, "buyer", labels, manager="tests")
    shown = kubectl.get("serviceaccount", "buyer", "--show-managed-fields")["metadata"]
    assert shown["labels"] == {"tier": "front"}
    assert "tests" in {each["manager"] for each in shown["managedFields"]}


def test_account_has_its_grants_and_the_audit_log_records_refusals(
    shared_cluster: RunningCluster, accounts: Accounts, kubectl: Kubectl
) -> None:
    """The audit log has allowed and forbidden requests with the resource."""
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


def test_expired_token_is_refused(accounts: Accounts, kubectl: Kubectl) -> None:
    """A valid token in the same file is accepted."""
    reader = accounts.make("reader", [READ])
    by_file = Kubectl(kubectl.program, reader.kubeconfig_by_file, kubectl.cache, kubectl.namespace)
    reader.token_file.write_text(reader.token(-1))
    assert "Unauthorized" in (said := by_file.run("get", "services")).err or "logged in" in said.err
    reader.token_file.write_text(reader.token(600))
    assert by_file("get", "services") == ""


async def test_creation_in_a_terminating_namespace_is_reported_as_not_found(
    api: Api, administrator: Kubectl, kubectl: Kubectl
) -> None:
    """The API server answers 403, the status of a missing permission; our client distinguishes the two."""
    held = {"name": "held", "finalizers": ["tests.meshwright.dev/held"]}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    administrator("delete", "namespace", kubectl.namespace, "--wait=false")
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount")
    with pytest.raises(ApiError, match="being terminated") as caught:
        await api.create(accounts, kubectl.namespace, {"metadata": {"name": "late"}})
    assert caught.value.is_not_found
    free = {"metadata": {"finalizers": None}}
    kubectl("patch", "configmap", "held", "--type=merge", "-p", json.dumps(free))
