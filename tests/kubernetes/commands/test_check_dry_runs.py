"""Test of `check --kubernetes` with a running control plane: dry runs show whether webhooks answer."""

from tests.kubernetes.admission.test_webhook import until
from tests.kubernetes.commands.test_check import found
from tests.kubernetes.injection.test_injection_webhook import Inject, inject
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools.program import Program
from tools.real_parts.cluster import RunningCluster

__all__ = ["inject"]


def test_check_reports_webhooks_that_do_not_answer(
    inject: Inject, kubectl: Kubectl, definitions: str, program: Program, shared_cluster: RunningCluster
) -> None:
    """Both webhooks are checked by a dry run.

    A namespace whose limits refuse sidecars is reported, and so is a stopped control plane.
    """
    del definitions
    server = inject({"sidecar": {"image": "proxy:1"}})
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    kubectl.until(lambda raw: raw.get("webhooks"), "mutatingwebhookconfiguration", "meshwright")
    kubectl.until(lambda raw: raw.get("webhooks"), "validatingwebhookconfiguration", "meshwright")
    names = ("policy webhook", "injection webhook", "policy webhook asked", "injection webhook asked")

    def all_are(status: str, *names: str) -> bool:
        answer = found(program, shared_cluster, "meshwright-system")
        return {answer[name]["status"] for name in names} == {status}

    until(
        lambda: all_are("ok", *names, "namespaces")
    )  # an API server applies a webhook configuration with a delay
    limited = {"type": "Container", "max": {"cpu": "1"}}
    limits = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "r"},
        "spec": {"limits": [limited]},
    }
    kubectl.apply(limits)
    until(lambda: all_are("failed", "Pods with sidecar"))
    kubectl("delete", "limitrange", "r")
    until(lambda: all_are("ok", "Pods with sidecar"))
    server.stop()
    until(lambda: all_are("failed", *names[2:]))
