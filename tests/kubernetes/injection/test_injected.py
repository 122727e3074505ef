"""What `meshwright inject` prints is taken by a real API server, which refuses fields that there are not."""

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


def test_every_case_that_is_written_down_would_be_taken(kubectl: Kubectl) -> None:
    """As far as the server's validation and its strict look at fields; admission plug-ins among them."""
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
def test_a_field_that_there_is_not_would_be_refused(kubectl: Kubectl, field: str) -> None:
    """So that the test above can fail."""
    text = (CASES / "probes.injected").read_text("utf-8")
    spoilt = text.replace(
        {"startupProb": "startupProbe:", "restartPolici": "restartPolicy:"}[field], f"{field}:"
    )
    assert spoilt != text
    words = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    assert kubectl.run(*words, given=spoilt).status != 0


def test_the_sidecar_is_as_restricted_as_pod_security_can_ask(kubectl: Kubectl, tmp_path: Path) -> None:
    """A namespace that enforces `restricted` refuses who sets rules alone; nothing where the node does."""
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


def test_annotations_have_the_bound_that_injection_goes_by(
    shared_cluster: RunningCluster, namespace: str
) -> None:
    """Names and values together: one byte more is refused."""
    metadata = {"name": "a", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    room = MOST_ANNOTATED - len("b")
    with Asking(shared_cluster) as ask:
        for more, status in ((0, 201), (1, 422)):
            answer = {"b": "é" * (room // 2) + "e" * (room % 2 + more)}
            assert ask.create({**pod, "metadata": {**metadata, "annotations": answer}}, DRY).status == status


def test_an_api_server_keeps_no_nulls_of_a_pod(shared_cluster: RunningCluster, namespace: str) -> None:
    """So that a webhook never sees one: neither does who injects by hand make anything of it."""
    own: Document = {"name": "meshwright-sidecar", "image": "auto", "resources": None, "lifecycle": None}
    own["env"] = [{"name": "A", "value": None}]
    metadata = {"name": "a", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [own]}}
    with Asking(shared_cluster) as ask:
        kept = ask.create(pod, DRY).body["spec"]["containers"][0]
    assert (kept["resources"], "lifecycle" in kept, kept["env"]) == ({}, False, [{"name": "A"}])
