"""Tests with random manifests: no crash, one sidecar at most, and a complete removal."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.manifests import TEMPLATES, inject, uninject
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.sidecars.envoy.driver import EnvoyDriver
from tests.tools.hypothesis_profiles import examples

KNOWN = InjectionInputs(InjectionConfig(image="proxy:1"), {"envoy": EnvoyDriver()})
NAMES = some.sampled_from(["a", "b", "meshwright-sidecar", "meshwright-init", "istio-proxy"])
PORTS = some.sampled_from([1, 80, "web", "http", 15020, None])
CALL = some.fixed_dictionaries(
    {"port": PORTS}, optional={"path": some.text(max_size=3), "host": some.just("x")}
)
PROBE = some.fixed_dictionaries(
    {}, optional={"httpGet": CALL, "tcpSocket": CALL, "grpc": CALL, "exec": some.just({"command": ["true"]})}
)
HOOKS = some.fixed_dictionaries(
    {},
    optional={
        item: some.fixed_dictionaries({}, optional={"httpGet": CALL}) for item in ("preStop", "postStart")
    },
)
CONTAINER = some.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "image": some.sampled_from(["auto", "a:1"]),
        "ports": some.just([{"name": "web", "containerPort": 8080}]),
        "livenessProbe": PROBE,
        "readinessProbe": PROBE,
        "lifecycle": HOOKS,
        "restartPolicy": some.just("Always"),
        "securityContext": some.sampled_from([None, {"runAsUser": 1500}, {"runAsUser": 0}]),
        "env": some.just([{"name": "A", "value": "1"}]),
    },
)
CONTAINERS = some.lists(CONTAINER, max_size=3)
ANNOTATIONS = some.dictionaries(
    some.sampled_from(
        [
            *("meshwright.dev/inject", "meshwright.dev/injected", "meshwright.dev/overlays"),
            *("meshwright.dev/sidecar-placement", "meshwright.dev/own-containers", "x"),
            *("openservicemesh.io/outbound-port-exclusion-list", "meshwright.dev/original-scraping"),
            *("prometheus.io/scrape", "prometheus.io/port"),
        ]
    ),
    some.sampled_from(["true", "false", "classic", "{}", "[]", "80", "\n", ""]),
    max_size=2,
)
POD = some.fixed_dictionaries(
    {"spec": some.fixed_dictionaries({"containers": CONTAINERS}, optional={"initContainers": CONTAINERS})},
    optional={"metadata": some.fixed_dictionaries({}, optional={"annotations": ANNOTATIONS})},
)
WORDS = some.sampled_from(["spec", "template", "metadata", "containers", "name"])
JUNK = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=3),
    lambda inner: (
        some.lists(inner, max_size=2)
        | some.dictionaries(
            some.sampled_from(["spec", "template", "metadata", "containers", "name"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(
    max_examples=examples(20, fresh=160),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(some.sampled_from(sorted(TEMPLATES)), POD | JUNK)
def test_any_manifest_gets_one_sidecar_or_stays_with_a_reason(of: tuple[str, str], pod: object) -> None:
    """The input is never modified, and a second injection changes no field.

    `uninject` restores the author's pod.
    """
    document = _around(of, pod)
    before = copy.deepcopy(document)
    outcome = inject(KNOWN, {}, document, "shop")
    assert document == before
    assert all(injection_result.why for injection_result in outcome.results)
    if not outcome.changed:
        assert outcome.manifest == document
        return
    assert inject(KNOWN, {}, outcome.manifest, "shop").manifest == outcome.manifest
    spec = _pod(of, outcome.manifest)["spec"]
    names = [item["name"] for item in (*spec["containers"], *spec["initContainers"])]
    assert (names.count("meshwright-sidecar"), names.count("meshwright-init")) == (1, 1)
    assert len({volume["name"] for volume in spec["volumes"]}) == len(spec["volumes"])
    if "meshwright.dev/injected" in _pod(of, before).get("metadata", {}).get("annotations", {}):
        return  # the author's annotation claims an earlier injection
    back = uninject(outcome.manifest, "shop").manifest
    assert _bare(_pod(of, back)) == _bare(_pod(of, before))


def _around(of: tuple[str, str], pod: object) -> dict[str, Any]:
    group, kind = of
    head = {"apiVersion": f"{group}/v1".strip("/"), "kind": kind}
    path = TEMPLATES[of]
    if not path:
        return {**head, **(pod if isinstance(pod, dict) else {})}
    inner: object = pod
    for name in reversed(path):
        inner = {name: inner}
    assert isinstance(inner, dict)
    return {**head, **inner}


def _pod(of: tuple[str, str], document: Any) -> Any:
    for name in TEMPLATES[of]:
        document = document[name]
    return document


def _bare(value: Any) -> Any:
    """Return a value without nulls and empty collections, which an API server treats alike."""
    if isinstance(value, dict):
        result = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in result.items() if item not in (None, {}, [])}
    return [_bare(item) for item in value] if isinstance(value, list) else value
