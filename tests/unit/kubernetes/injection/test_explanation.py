"""Tests of the explanation why a pod gets a sidecar or not.

It has the matching webhooks, each rule in its order, and the state of a running pod.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.explanation import Explanation, SidecarDrift, Step, explained
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.kubernetes.injection.webhook.registration import configuration
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.registry import DriverRegistry

INJECT = "meshwright.dev/inject"
REGISTERED = (configuration({"url": "https://x"}, b"", "meshwright-system", mesh="osm"),)
DRIVERS = DriverRegistry.discover().drivers


def _known(**more: Any) -> InjectionInputs:
    return InjectionInputs(
        read({"mesh": "osm", "sidecar": {"image": "proxy:1"}, **more}, "config.yaml"), DRIVERS
    )


def _pod(**labels: str) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": "shop", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}


def _shop(**labels: str) -> NamespaceObject:
    return NamespaceObject(Namespace("shop"), tuple(labels.items()))


def _of(namespace: Mapping[str, str], pod: Mapping[str, str], **more: Any) -> Explanation:
    return explained(_known(**more), _shop(**namespace), _pod(**pod), REGISTERED)


def test_namespace_without_the_label_is_the_explanation() -> None:
    """The decision is to inject and no webhook reviews the pod, so each webhook names its missing label."""
    explanation = _of({}, {})
    assert (explanation.answer.result, explanation.is_selected, explanation.gets_one) == (
        "injected",
        False,
        False,
    )
    assert explanation.webhooks is not None
    why = {webhook.webhook.partition(".")[0]: webhook.why_not for webhook in explanation.webhooks}
    wanted = "the namespace: label meshwright.dev/inject must be 'true', but the label is missing"
    assert why["namespace"] == wanted
    assert all(why.values())


def test_rules_are_listed_in_order_up_to_the_deciding_one() -> None:
    """Each rule shows its finding, and the last one decides."""
    explanation = _of(
        {INJECT: "true"}, {"tier": "batch"}, neverInjectSelector=[{"matchLabels": {"tier": "batch"}}]
    )
    assert [step.result for step in explanation.steps] == [
        "",
        "",
        "no: neverInjectSelector matches with tier=batch",
    ]
    assert (explanation.is_selected, explanation.gets_one) == (True, False)
    explanation = _of({INJECT: "true"}, {})
    assert explanation.steps[-1].result == "yes: the namespace's label meshwright.dev/inject is true"
    assert explanation.gets_one


def test_invalid_value_of_a_switch_ends_the_list_of_rules() -> None:
    """Both the answer and the rule that found the invalid value show the refusal."""
    explanation = _of({INJECT: "true"}, {INJECT: "perhaps"})
    assert (explanation.answer.result, explanation.gets_one) == ("refused", False)
    wrong = "label meshwright.dev/inject is 'perhaps': must be one of false, true"
    assert explanation.answer.words == wrong
    assert explanation.steps == (
        Step("pods that never get a sidecar"),
        Step("the pod's label and annotations", f"refused: {wrong}"),
    )
    step = _of({INJECT: "maybe"}, {}).steps[-1]
    assert step.rule == "the namespace's label and annotations"
    assert step.result.startswith("refused: the namespace's label meshwright.dev/inject is 'maybe'")


def _made(image: str = "proxy:1") -> Any:
    known = _known(sidecar={"image": image})
    return injected(known, _shop(**{INJECT: "true"}), checked(_pod())).pod


@pytest.mark.parametrize(
    ("namespace", "pod", "expected"),
    [
        ({INJECT: "true"}, _made(), SidecarDrift.AS_WANTED),
        ({INJECT: "true"}, _made("proxy:0"), SidecarDrift.OTHER),
        ({INJECT: "true"}, _pod(), SidecarDrift.MISSING),
        ({}, _pod(), SidecarDrift.AS_WANTED),
        ({}, _made(), SidecarDrift.NOT_WANTED),
    ],
)
def test_running_pod_is_compared_with_its_new_injection(
    namespace: Any, pod: Any, expected: SidecarDrift
) -> None:
    """Only the presence of the sidecar and its image count.

    The API server fills in defaults elsewhere.
    """
    assert explained(_known(), _shop(**namespace), pod, REGISTERED, runs=True).standing is expected
