"""Tests of the output of `meshwright inject` on a real API server, which refuses unknown fields."""

from pathlib import Path
from typing import Final

import pytest

from meshwright.sidecars.injection.patching import MOST_ANNOTATED
from tests.kubernetes.tools.api_requests import DRY, Asking
from tests.kubernetes.tools.kubectl import Document, Kubectl
from tests.unit.kubernetes.injection.test_by_hand import CASES, NAMES, injected, run
from tools.real_parts.cluster import RunningCluster

_ENFORCED: Final = "pod-security.kubernetes.io/enforce"
_RESTRICTED: Final = """
apiVersion: v1
kind: Pod
metadata: {name: careful}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: a
    image: a:1
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
"""
"""A Pod as its author must write it where Pod Security is `restricted`."""

UNKNOWN = ("left-out", "openshift")
"""Files with documents of kinds that no cluster of ours has."""


def test_every_injected_case_is_accepted_by_the_api_server(kubectl: Kubectl) -> None:
    """The server's strict field validation and its admission plug-ins accept every recorded case."""
    texts = [(CASES / f"{name}.injected").read_text("utf-8") for name in NAMES if name not in UNKNOWN]
    asked = ("create", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-")
    # The namespaces of cases are there: what is injected into them is asked about.
    parts = [part for text in texts for part in text.split("---\n") if "kind: Namespace\n" not in part]
    result = kubectl(*asked, given="---\n".join(parts))
    names = {line.partition("/")[2] for line in result.splitlines()}
    assert {
        "deployment",
        "cronjob",
        "every-way",
        "own-sidecar",
        "tproxy",
        "debugged",
        "classic",
        "merged",
    } <= names


@pytest.mark.parametrize("field", ["startupProb", "restartPolici"])
def test_unknown_field_is_refused_by_strict_validation(kubectl: Kubectl, field: str) -> None:
    """This is the negative control of the test above."""
    text = (CASES / "probes.injected").read_text("utf-8")
    spoilt = text.replace(
        {"startupProb": "startupProbe:", "restartPolici": "restartPolicy:"}[field], f"{field}:"
    )
    assert spoilt != text
    words = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    assert kubectl.run(*words, given=spoilt).status != 0


def test_sidecar_meets_pod_security_restricted_except_for_the_init_container(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    """A `restricted` namespace refuses only the init container that sets the rules.

    With the CNI plug-in, the Pod is accepted.
    """
    kubectl("label", "namespace", kubectl.namespace, f"{_ENFORCED}=restricted")
    asked = ("create", "--dry-run=server", "-f", "-")
    kubectl(*asked, given=_RESTRICTED)
    refused = kubectl.run(*asked, given=injected(_RESTRICTED).stdout)
    assert refused.status != 0
    assert '"meshwright-init"' in refused.err
    assert "meshwright-sidecar" not in refused.err
    assert "volume" not in refused.err
    config = tmp_path / "injection.yaml"
    config.write_text("interception: cni\nsidecar: {image: proxy:1}\n")
    kubectl(*asked, given=run("inject", "-f", "-", "--config", str(config), given=_RESTRICTED).stdout)


def test_api_server_has_the_annotation_limit_of_injection(
    shared_cluster: RunningCluster, namespace: str
) -> None:
    """The limit applies to names and values together; one more byte is refused."""
    metadata = {"name": "a", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    room = MOST_ANNOTATED - len("b")
    with Asking(shared_cluster) as ask:
        for more, status in ((0, 201), (1, 422)):
            answer = {"b": "é" * (room // 2) + "e" * (room % 2 + more)}
            assert ask.create({**pod, "metadata": {**metadata, "annotations": answer}}, DRY).status == status


def test_api_server_drops_null_fields_of_a_pod(shared_cluster: RunningCluster, namespace: str) -> None:
    """A webhook never sees them, so injection by hand must ignore them as well."""
    own: Document = {"name": "meshwright-sidecar", "image": "auto", "resources": None, "lifecycle": None}
    own["env"] = [{"name": "A", "value": None}]
    metadata = {"name": "a", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [own]}}
    with Asking(shared_cluster) as ask:
        kept = ask.create(pod, DRY).body["spec"]["containers"][0]
    assert (kept["resources"], "lifecycle" in kept, kept["env"]) == ({}, False, [{"name": "A"}])
