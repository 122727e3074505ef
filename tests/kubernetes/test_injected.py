"""What `meshwright inject` prints is taken by a real API server, which refuses fields that there are not."""

from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.kubectl import Kubectl
from tests.unit.injector.test_by_hand import CASES, NAMES, injected, run

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
    found = kubectl(*asked, given="---\n".join(texts))
    names = {line.partition("/")[2] for line in found.splitlines()}
    assert {"deployment", "cronjob", "every-way", "own-sidecar", "tproxy", "debugged", "classic"} <= names


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
