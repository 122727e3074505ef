"""Test of injection with random Pods: a Pod that an API server accepts is accepted with its sidecar, too.

`make fuzz-injection` is the long form (PODS=n); MESHWRIGHT_FUZZ is the number of Pods.
"""

import copy
import os
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import DriverError
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.injection.restoration import restored
from tests.kubernetes.injection.random_pods import Pods
from tests.kubernetes.tools.api_requests import DRY, Answer, Asking
from tools.real_parts.cluster import RunningCluster

DRAWN: Final = int(os.environ.get("MESHWRIGHT_FUZZ", "60"))
_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
"""Fields of metadata that are an API server's own."""
_CONFIGS: Final = [
    {"sidecar": {"image": "proxy:1"}, "interception": by, "policy": "enabled"}
    for by in ("init-container", "cni")
]


class Injecting:
    """Creates each Pod by a dry run, without and with its sidecar; counts the outcomes."""

    def __init__(self, ask: Asking, namespace: str) -> None:
        self._ask, self._namespace = ask, namespace
        self.became = Counter[str]()

    def one(self, pod: Pod, known: InjectionInputs) -> None:
        """Inject a Pod in the form of a file, and in the form that an API server sends to a webhook."""
        taken = self._dry(pod)
        self.became["valid" if taken.status == 201 else "not valid"] += 1
        self._injected(pod, known, is_valid=taken.status == 201)
        if taken.status == 201:
            self._injected(_as_asked(taken.body), known, is_valid=True)

    def _injected(self, pod: Pod, known: InjectionInputs, *, is_valid: bool) -> None:
        space = NamespaceObject(Namespace(self._namespace))
        before = copy.deepcopy(pod)
        try:
            made = injected(known, space, pod).pod
        except DriverError:
            self.became["refused"] += 1
            return
        assert pod == before
        if made is None:
            self.became["left as it is"] += 1
            return
        assert injected(known, space, made).pod == made
        assert restored(made) == checked(before)
        if is_valid:
            self.became["injected"] += 1
            answer = self._dry(made)
            assert answer.status == 201, (answer.message, pod)
            assert len(answer.warnings) <= len(self._dry(pod).warnings), (answer.warnings, pod)

    def _dry(self, pod: Pod) -> Answer:
        document: Any = pod
        placed = {**document, "metadata": {**document["metadata"], "namespace": self._namespace}}
        return self._ask.create(placed, DRY)


def _as_asked(body: Mapping[str, Any]) -> Any:
    """Return a Pod in the form that an API server sends to a webhook: with defaults, not yet stored."""
    metadata = {name: value for name, value in body["metadata"].items() if name not in _SERVERS}
    return {**body, "metadata": metadata}


@pytest.mark.timeout(600 + DRAWN)
def test_valid_random_pod_is_valid_with_its_sidecar(shared_cluster: RunningCluster, namespace: str) -> None:
    """Random Pods of the API's schema are tested. An invalid Pod does not crash the injector."""
    with Asking(shared_cluster) as ask:
        schemas = ask("GET", "/openapi/v3/api/v1").body["components"]["schemas"]
        injecting = Injecting(ask, namespace)
        configs = some.sampled_from(
            [InjectionInputs(read(config, "config.yaml"), {"envoy": EnvoyDriver()}) for config in _CONFIGS]
        )

        @settings(
            max_examples=DRAWN, deadline=None, derandomize=DRAWN <= 60, suppress_health_check=[*HealthCheck]
        )
        @given(pod=Pods(schemas).any, known=configs)
        def drawn(pod: Any, known: InjectionInputs) -> None:
            injecting.one(pod, known)

        drawn()
    sys.stdout.write(f"{dict(injecting.became)}\n")
    assert injecting.became["injected"] >= DRAWN // 3, injecting.became
    assert injecting.became["valid"] >= DRAWN // 3
