"""Test of Pods that get their certificates in Secrets, on a real API server with its garbage collector."""

import base64
from typing import Any

import yaml

from tests.kubernetes.admission.test_webhook import until
from tests.kubernetes.injection.test_injection_webhook import Inject, inject
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools.program import Program

__all__ = ["inject"]

LABEL = "meshwright.dev/proxy-uuid"
CONFIG = {"identity": "secret", "sidecar": {"image": "proxy:1"}}


def _secrets(kubectl: Kubectl) -> dict[str, Any]:
    result = kubectl.get("secrets", "-l", LABEL)["items"]
    return {item["metadata"]["name"]: item for item in result}


def test_pod_secret_is_created_before_its_pod_and_deleted_with_it(
    inject: Inject, kubectl: Kubectl, program: Program
) -> None:
    """A dry run creates no Secret, and a copied Pod gets a new identity.

    The ledger knows the proxy, and the key is not logged.
    """
    server = inject(CONFIG)
    kubectl("label", "namespace", kubectl.namespace, "meshwright.dev/inject=true")
    pod = objects.pod("one")
    until(lambda: "meshwright-credentials" in str(kubectl.dry_run(pod).body))
    assert _secrets(kubectl) == {}
    kubectl("create", "-f", "-", given=yaml.safe_dump(pod))
    made = kubectl.get("pod", "one")
    uuid = made["metadata"]["labels"][LABEL]
    ((name, secret),) = _secrets(kubectl).items()
    assert name == f"meshwright-proxy-{uuid}"
    assert sorted(secret["data"]) == ["ca.pem", "proxy.key", "proxy.pem"]
    assert (
        f"{uuid}.default.{kubectl.namespace}"
        in program.run("certs", "list", "--state", str(program.state))[1]
    )

    def owners() -> list[str]:
        result = _secrets(kubectl).get(name, {"metadata": {}})["metadata"].get("ownerReferences", ())
        return [item["uid"] for item in result]

    until(lambda: owners() == [made["metadata"]["uid"]])
    copy = {**objects.pod("copy"), "spec": made["spec"]}
    copy["metadata"] |= {"labels": made["metadata"]["labels"], "annotations": made["metadata"]["annotations"]}
    kubectl("create", "-f", "-", given=yaml.safe_dump(copy))
    other = kubectl.get("pod", "copy")["metadata"]["labels"][LABEL]
    assert other != uuid
    assert set(_secrets(kubectl)) == {name, f"meshwright-proxy-{other}"}
    kubectl("delete", "pod", "one", "--force")
    until(lambda: set(_secrets(kubectl)) == {f"meshwright-proxy-{other}"})
    key = base64.b64decode(secret["data"]["proxy.key"]).decode().splitlines()[1]
    assert key not in server.log_path.read_text()
