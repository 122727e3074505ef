"""Tests of the comparison of a pod's sidecar with a new injection.

Additions by an API server or by others are ignored.
"""

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
    """Return an injected pod as stored by an API server, with its defaults and the account's token."""
    made = injected(known or _known(), SHOP, checked(_author_s())).pod
    assert made is not None
    pod: dict[str, Any] = copy.deepcopy(dict(made))
    mount = {
        "name": "kube-api-access-x",
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": True,
    }
    spec = pod["spec"]
    for volume in (*spec["initContainers"], *spec["containers"]):
        volume |= {
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": volume.get("imagePullPolicy", "Always"),
            "resources": volume.get("resources", {}),
            "volumeMounts": [*volume.get("volumeMounts", ()), mount],
        }
        for probe in (volume[name] for name in volume if name.endswith("Probe")):
            for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1)):
                probe.setdefault(name, value)
            probe.setdefault("failureThreshold", 3)
            probe["httpGet"].setdefault("scheme", "HTTP")
        if volume["name"] == "meshwright-sidecar":
            volume["resources"] = {
                "limits": {"memory": "1Gi"},
                "requests": {"cpu": "1", "memory": "1Gi"},
            }
    for volume in spec["volumes"]:
        for source in (volume[name] for name in ("projected", "configMap", "downwardAPI") if name in volume):
            source["defaultMode"] = 420
            for item in source.get("items", ()):
                if "fieldRef" in item:
                    item["fieldRef"]["apiVersion"] = "v1"
    spec["volumes"].append({"name": "kube-api-access-x", "projected": {"sources": [], "defaultMode": 420}})
    return pod | {"status": {"phase": "Running"}}


def _said(known: InjectionInputs, pod: Mapping[str, Any]) -> list[str]:
    result = differences(known, SHOP, checked(pod))
    assert result is not None
    return list(map(str, result))


def _container(pod: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any]
    (result,) = [
        init_container
        for init_container in pod["spec"]["initContainers"]
        if init_container["name"] == "meshwright-sidecar"
    ]
    return result


def test_fields_of_the_api_server_are_no_difference() -> None:
    """Examples are defaults, requests derived from limits, normalised quantities and the account's token."""
    assert _said(_known(), _standing()) == []


def test_each_changed_field_is_listed_in_the_order_of_the_pod() -> None:
    """Image, resources and the owner of the interception rules are all compared."""
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
    """Return the differences of the init container, which verifies the rules instead of setting them."""
    result = [item for item in _said(now, _standing()) if "[meshwright-init]" in item]
    fields = [item.partition("[meshwright-init].")[2].split()[0].split("[")[0] for item in result]
    assert {"args", "image", "securityContext.capabilities.add", "securityContext.runAsUser"} <= set(fields)
    assert result == sorted(result, key=lambda item: item.split()[0].split("]")[1].split("[")[0])
    return result


def test_removed_overlay_is_a_difference_without_values() -> None:
    """An environment variable may hold a secret, so only its name is shown."""
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


def test_addition_to_all_containers_is_no_difference() -> None:
    """Webhooks of cloud providers add variables to every container.

    A variable of the sidecar alone is a difference.
    """
    pod = _standing()
    role = {"name": "AWS_ROLE_ARN", "value": "arn"}
    _container(pod).setdefault("env", []).append(role)
    assert _said(_known(), pod) == [f"{NATIVE}.env[AWS_ROLE_ARN] is set; a new Pod does not get the field"]
    pod["spec"]["containers"][0]["env"] = [role]
    assert _said(_known(), pod) == []


def test_resources_of_a_limit_range_are_no_difference() -> None:
    """The LimitRanger's annotation names the container.

    Without the annotation the resources are a difference.
    """
    none = _known(sidecar={"image": "proxy:1", "resources": {}})
    pod = _standing(none)
    _container(pod)["resources"] = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    lines = [
        f"{NATIVE}.resources.{item}.cpu is 1; a new Pod does not get the field"
        for item in ("limits", "requests")
    ]
    assert _said(none, pod) == lines
    words = "LimitRanger plugin set: cpu limit for init container meshwright-sidecar"
    pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] = words
    assert _said(none, pod) == []


def test_moved_sidecar_and_changed_container_order_are_differences() -> None:
    """The sidecar was classic and would be native now, or another container was inserted before ours."""
    classic = _known(sidecar={**SIDECAR, "placement": "classic"})
    lines = _said(_known(), _standing(classic))
    assert "spec.containers[meshwright-sidecar] is set; a new Pod does not get the field" in lines
    assert f"{NATIVE} is missing; a new Pod gets the field" in lines
    pod = _standing()
    pod["spec"]["initContainers"].insert(0, {"name": "first", "image": "x"})
    (order,) = _said(_known(), pod)
    assert order == (
        "the order of spec.initContainers is first, meshwright-init, meshwright-sidecar; "
        "a new Pod gets meshwright-init, meshwright-sidecar, first"
    )


def test_only_the_differing_arguments_are_shown() -> None:
    """A common beginning and end of the arguments are omitted."""
    pod = _standing()
    args = _container(pod)["args"]
    at = args.index("--envoy-log-level") + 1
    args[at] = "trace"
    assert _said(_known(), pod) == [f"{NATIVE}.args[{at}] is trace; a new Pod gets error"]


def test_pod_that_would_get_no_sidecar_is_not_compared() -> None:
    """The result is None, because such a pod is reported elsewhere."""
    off = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "false"),))
    assert differences(_known(), off, checked(_standing())) is None


@pytest.mark.parametrize("place", ["native", "classic"])
@pytest.mark.parametrize("rules", ["init-container", "cni"])
def test_every_kind_of_sidecar_equals_its_new_injection(place: str, rules: str) -> None:
    """Each placement and owner of the rules is compared in the form stored by an API server."""
    known = _known(sidecar={**SIDECAR, "placement": place}, interception=rules)
    assert _said(known, _standing(known)) == []


def test_pod_with_a_secret_is_compared_with_its_own_secret() -> None:
    """The UUID of the pod stays.

    A change between Secret and token enrolment is a difference, in both directions.
    """
    by_secret = _known(identity="secret")
    standing = _standing(replace(by_secret, uuid=ProxyUuid("5b1c")))
    assert differences(by_secret, SHOP, checked(standing)) == ()
    other = differences(_known(), SHOP, checked(standing))
    back = differences(by_secret, SHOP, checked(_standing()))
    assert other
    assert back
    volumes = {"spec.volumes[meshwright-credentials]", "spec.volumes[meshwright-token]"}
    assert volumes <= {
        difference.field.partition("].")[0].rstrip("]") + "]" for difference in (*other, *back)
    }


def test_command_refuses_identity_by_secret() -> None:
    """A template is valid for many pods, and a Secret belongs to one pod."""
    with pytest.raises(
        CannotPatchError,
        match="the injection configuration has `identity: secret`, which works only with the webhook",
    ):
        injected(_known(identity="secret"), SHOP, checked(_author_s()))
