"""Tests that the work to inject one Pod is linear in its size, whichever part is large."""

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.kubernetes.injection.webhook.review import Result, answer, response
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.injection.names import ADDED_ANNOTATION
from meshwright.sidecars.registry import DriverRegistry
from tests.tools.counted_work import Work
from tests.unit.growth.objects import many
from tests.unit.growth.test_one_object import MOST, SIZE, SPARE

SHOP: Final = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "true"),))
KNOWN: Final = InjectionInputs(
    read({"sidecar": {"image": "proxy:1"}}, "config.yaml"), DriverRegistry.discover().drivers, version=(1, 30)
)
PROBE: Final = {"httpGet": {"path": "/healthz", "port": "http"}}
HOOK: Final = {"preStop": {"httpGet": {"path": "/stop", "port": "http"}}}

Document = dict[str, Any]


def _container(name: str, **more: Any) -> Document:
    return {"name": name, "image": "app:1", "ports": [{"name": "http", "containerPort": 8080}], **more}


def _pod(annotations: Mapping[str, str] | None = None, **spec: Any) -> Document:
    metadata = {"name": "one", "namespace": "shop", "annotations": dict(annotations or {})}
    base = {"containers": [_container("app")]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**base, **spec}}


def _injected(pod: Document) -> Document:
    """Return a Pod with its sidecar, as stored by an API server."""
    made = copy.deepcopy(pod)
    for item in answer(KNOWN, SHOP, pod).patch:
        _, part, *field = item["path"].split("/")
        made[part] = {**made[part], field[0]: item["value"]} if field else item["value"]
    return made


def _asking(pod: Document, **amounts: str) -> Document:
    """Return a Pod with resources of its own, whose author gives the sidecar the same resources."""
    own = {"name": "sidecar-proxy", "image": "auto", "resources": {"requests": amounts}}
    pod["spec"]["containers"].append(own)
    pod["spec"]["resources"] = {"limits": amounts}
    return pod


LARGE: Final[Mapping[str, Callable[[int], Document]]] = {
    "containers": lambda n: _pod(containers=list(map(_container, many(n)))),
    "containers with probes": lambda n: _pod(
        containers=[
            _container(item, readinessProbe=PROBE, livenessProbe=PROBE, startupProbe=PROBE)
            for item in many(n)
        ]
    ),
    "containers with hooks": lambda n: _pod(
        containers=[_container(item, lifecycle=HOOK) for item in many(n)]
    ),
    "init containers that stay": lambda n: _pod(
        initContainers=[_container(item, restartPolicy="Always", readinessProbe=PROBE) for item in many(n)]
    ),
    "volumes": lambda n: _pod(volumes=[{"name": item, "emptyDir": {}} for item in many(n)]),
    "pull secrets": lambda n: _pod(imagePullSecrets=[{"name": item} for item in many(n)]),
    "ports": lambda n: _pod(
        containers=[
            _container(
                "app", ports=[{"name": item, "containerPort": 1 + at} for at, item in enumerate(many(n))]
            )
        ]
    ),
    "environment": lambda n: _pod(
        containers=[_container("app", env=[{"name": item, "value": "x"} for item in many(n)])]
    ),
    "annotations": lambda n: _pod(dict.fromkeys(many(n), "x")),
    "excluded ports": lambda n: _pod(
        {
            "openservicemesh.io/outbound-port-exclusion-list": ",".join(
                str(1000 + number) for number in range(n)
            )
        }
    ),
    "excluded ranges": lambda n: _pod(
        {
            "openservicemesh.io/outbound-ip-range-exclusion-list": ",".join(
                f"10.0.0.{number}/32" for number in range(n)
            )
        }
    ),
    "resources of all containers": lambda n: _asking(
        _pod(
            containers=[
                _container(each, resources={"requests": {f"hugepages-{each}": "1Mi"}}) for each in many(n)
            ]
        ),
        **{f"hugepages-{item}": "1Mi" for item in many(n)},
    ),
    "a sidecar that is there, and probes": lambda n: _injected(
        _pod(containers=[_container(item, readinessProbe=PROBE, lifecycle=HOOK) for item in many(n)])
    ),
    "a sidecar that is there, and volumes that are said to be its own": lambda n: _pod(
        {ADDED_ANNOTATION: json.dumps({"volumes": many(n), "imagePullSecrets": many(n)})},
        volumes=[{"name": item, "emptyDir": {}} for item in many(n, "v")],
        imagePullSecrets=[{"name": item} for item in many(n, "v")],
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_work_for_one_pod_is_linear_in_its_size(name: str) -> None:
    """Twice the Pod needs twice the work, so that no other Pod is refused by a timeout."""

    def reviewed(size: int) -> int:
        pod, work = LARGE[name](size), Work()
        with work:
            output = answer(KNOWN, SHOP, pod)
            response("7", output)
        assert output.result is not Result.REFUSED, output.words
        return work.count

    small = reviewed(1)  # work done once in a process, such as imports, is done here
    one, other = (reviewed(size) - small for size in (SIZE, 2 * SIZE))
    assert other <= MOST * one + SPARE, (one, other)
