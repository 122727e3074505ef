"""A pod's sidecar beside the one that it would get now: what an API server or somebody else adds is none."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from meshwright.kubernetes.injection.comparison import differences
from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.names import Namespace, ProxyUuid
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.registry import DriverRegistry

DRIVERS = DriverRegistry.discover().drivers
SHOP = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "true"),))
SIDECAR: Mapping[str, Any] = {
    "image": "proxy:1",
    "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1000m"}},
}
OVERLAYS = {"loud": {"sidecar": {"env": [{"name": "LOUD", "value": "s3cret"}], "tty": False}}}
NATIVE = "spec.initContainers[meshwright-sidecar]"


def _known(**more: Any) -> InjectionInputs:
    return InjectionInputs(read({"sidecar": SIDECAR, "overlays": OVERLAYS, **more}, "config.yaml"), DRIVERS)


def _author_s() -> dict[str, Any]:
    probe = {"httpGet": {"path": "/ready", "port": "web"}}
    app = {
        "name": "app",
        "image": "app:1",
        "ports": [{"name": "web", "containerPort": 8080}],
        "readinessProbe": probe,
    }
    return {"metadata": {"name": "one", "namespace": "shop"}, "spec": {"containers": [app]}}


def _standing(known: InjectionInputs | None = None) -> dict[str, Any]:
    """Return a pod as an API server has it that was injected: with its defaults, and the account's token."""
    made = injected(known or _known(), SHOP, checked(_author_s())).pod
    assert made is not None
    pod: dict[str, Any] = copy.deepcopy(dict(made))
    mount = {
        "name": "kube-api-access-x",
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": True,
    }
    spec = pod["spec"]
    for each in (*spec["initContainers"], *spec["containers"]):
        each |= {
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": each.get("imagePullPolicy", "Always"),
            "resources": each.get("resources", {}),
            "volumeMounts": [*each.get("volumeMounts", ()), mount],
        }
        for probe in (each[name] for name in each if name.endswith("Probe")):
            for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1)):
                probe.setdefault(name, value)
            probe.setdefault("failureThreshold", 3)
            probe["httpGet"].setdefault("scheme", "HTTP")
        if each["name"] == "meshwright-sidecar":
            each["resources"] = {
                "limits": {"memory": "1Gi"},
                "requests": {"cpu": "1", "memory": "1Gi"},
            }
    for each in spec["volumes"]:
        for source in (each[name] for name in ("projected", "configMap", "downwardAPI") if name in each):
            source["defaultMode"] = 420
            for item in source.get("items", ()):
                if "fieldRef" in item:
                    item["fieldRef"]["apiVersion"] = "v1"
    spec["volumes"].append({"name": "kube-api-access-x", "projected": {"sources": [], "defaultMode": 420}})
    return pod | {"status": {"phase": "Running"}}


def _said(known: InjectionInputs, pod: Mapping[str, Any]) -> list[str]:
    found = differences(known, SHOP, checked(pod))
    assert found is not None
    return list(map(str, found))


def _container(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [each for each in pod["spec"]["initContainers"] if each["name"] == "meshwright-sidecar"]
    return found


def test_what_an_api_server_fills_in_is_no_difference() -> None:
    """Its defaults, the requests it makes of limits, quantities as it writes them, the account's token."""
    assert _said(_known(), _standing()) == []


def test_each_field_that_would_be_another_is_said_in_the_order_of_the_pod() -> None:
    """Image, resources and who sets the rules; not only the image."""
    now = _known(
        sidecar={"image": "proxy:2", "resources": {"requests": {"cpu": "2"}}}, interception="cni", mesh="osm"
    )
    assert _said(now, _standing()) == [
        "metadata.annotations[meshwright.dev/interception] is missing; a new Pod gets "
        + str(_annotation(now, "meshwright.dev/interception")),
        "metadata.annotations[meshwright.dev/mesh] is meshwright; a new Pod gets osm",
        *_said_of_init(now),
        f"{NATIVE}.image is proxy:1; a new Pod gets proxy:2",
        f"{NATIVE}.resources.limits.memory is 1Gi; a new Pod does not get the field",
        f"{NATIVE}.resources.requests.cpu is 1; a new Pod gets 2",
        f"{NATIVE}.resources.requests.memory is 1Gi; a new Pod does not get the field",
    ]


def _annotation(known: InjectionInputs, name: str) -> object:
    made = injected(known, SHOP, checked(_author_s())).pod
    assert made is not None
    return made["metadata"]["annotations"][name]


def _said_of_init(now: InjectionInputs) -> list[str]:
    """The init container sees to the rules in place of setting them: of its fields, those that differ."""
    found = [each for each in _said(now, _standing()) if "[meshwright-init]" in each]
    fields = [each.partition("[meshwright-init].")[2].split()[0].split("[")[0] for each in found]
    assert {"args", "image", "securityContext.capabilities.add", "securityContext.runAsUser"} <= set(fields)
    assert found == sorted(found, key=lambda each: each.split()[0].split("]")[1].split("[")[0])
    return found


def test_what_an_overlay_gave_and_gives_no_more_is_a_difference_and_shows_no_value() -> None:
    """An environment may hold a secret: its name is enough."""
    loud = _standing(_known(defaultOverlays=["loud"]))
    assert _said(_known(), loud) == [f"{NATIVE}.env[LOUD] is set; a new Pod does not get the field"]
    assert _said(_known(defaultOverlays=["loud"]), _standing()) == [
        f"{NATIVE}.env[LOUD] is missing; a new Pod gets the field"
    ]
    other = _container(loud)["env"]
    other[0]["value"] = "an0ther"
    assert _said(_known(defaultOverlays=["loud"]), loud) == [
        f"{NATIVE}.env[LOUD].value has another value than in a new Pod"
    ]


def test_what_somebody_gives_all_containers_alike_is_no_difference() -> None:
    """As webhooks of cloud providers do; what the sidecar alone has is one."""
    pod = _standing()
    role = {"name": "AWS_ROLE_ARN", "value": "arn"}
    _container(pod).setdefault("env", []).append(role)
    assert _said(_known(), pod) == [f"{NATIVE}.env[AWS_ROLE_ARN] is set; a new Pod does not get the field"]
    pod["spec"]["containers"][0]["env"] = [role]
    assert _said(_known(), pod) == []


def test_what_a_limit_range_gave_is_no_difference() -> None:
    """The API server says in an annotation whom it gave something; without that it is one."""
    none = _known(sidecar={"image": "proxy:1", "resources": {}})
    pod = _standing(none)
    _container(pod)["resources"] = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    said = [
        f"{NATIVE}.resources.{each}.cpu is 1; a new Pod does not get the field"
        for each in ("limits", "requests")
    ]
    assert _said(none, pod) == said
    words = "LimitRanger plugin set: cpu limit for init container meshwright-sidecar"
    pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] = words
    assert _said(none, pod) == []


def test_a_sidecar_of_another_place_and_a_container_too_many_are_said() -> None:
    """Native where it was classic; and a container before ours that came there after."""
    classic = _known(sidecar={**SIDECAR, "placement": "classic"})
    said = _said(_known(), _standing(classic))
    assert "spec.containers[meshwright-sidecar] is set; a new Pod does not get the field" in said
    assert f"{NATIVE} is missing; a new Pod gets the field" in said
    pod = _standing()
    pod["spec"]["initContainers"].insert(0, {"name": "first", "image": "x"})
    (order,) = _said(_known(), pod)
    assert order == (
        "the order of spec.initContainers is first, meshwright-init, meshwright-sidecar; "
        "a new Pod gets meshwright-init, meshwright-sidecar, first"
    )


def test_arguments_are_shown_where_they_differ() -> None:
    """What they begin and end with alike is left out."""
    pod = _standing()
    args = _container(pod)["args"]
    at = args.index("--envoy-log-level") + 1
    args[at] = "trace"
    assert _said(_known(), pod) == [f"{NATIVE}.args[{at}] is trace; a new Pod gets error"]


def test_a_pod_that_would_get_none_has_no_differences() -> None:
    """What there is of it is said elsewhere."""
    off = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "false"),))
    assert differences(_known(), off, checked(_standing())) is None


@pytest.mark.parametrize("place", ["native", "classic"])
@pytest.mark.parametrize("rules", ["init-container", "cni"])
def test_every_way_of_a_sidecar_is_as_itself(place: str, rules: str) -> None:
    """As it was made, and as an API server has it."""
    known = _known(sidecar={**SIDECAR, "placement": place}, interception=rules)
    assert _said(known, _standing(known)) == []


def test_a_pod_of_a_secret_is_compared_with_its_own() -> None:
    """Its UUID is nobody's to change; what joins by its token would be given one, and the other way round."""
    by_secret = _known(identity="secret")
    standing = _standing(replace(by_secret, uuid=ProxyUuid("5b1c")))
    assert differences(by_secret, SHOP, checked(standing)) == ()
    other = differences(_known(), SHOP, checked(standing))
    back = differences(by_secret, SHOP, checked(_standing()))
    assert other
    assert back
    volumes = {"spec.volumes[meshwright-credentials]", "spec.volumes[meshwright-token]"}
    assert volumes <= {each.field.partition("].")[0].rstrip("]") + "]" for each in (*other, *back)}


def test_by_hand_there_is_no_pod_of_a_secret() -> None:
    """A template stands for many pods, and a Secret is of one."""
    with pytest.raises(
        CannotPatchError,
        match="the injection configuration has `identity: secret`, which works only with the webhook",
    ):
        injected(_known(identity="secret"), SHOP, checked(_author_s()))
