"""Pods that are copied from injected ones, as `kubectl debug POD --copy-to=COPY` sends them.

By default it leaves out labels, annotations and the containers' probes (kubectl 1.32 and later); the flags
`--keep-...` keep them. What it copies is what the API server has made of the pod.
"""

import copy
import json
from typing import Any

import pytest

from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.manifests import uninject
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.kubernetes.injection.webhook.review import Result, answer
from meshwright.mesh.names import Namespace, ProxyUuid
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.registry import DriverRegistry

SHOP = NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "true"),))
ACCOUNT = "kube-api-access-x7k2p"
PROBE = {"httpGet": {"path": "/ok", "port": 80}}
OVERLAY = {
    "sidecar": {"volumeMounts": [{"name": "dumps", "mountPath": "/dumps"}]},
    "volumes": [{"name": "dumps", "emptyDir": {}}],
}
CONFIGURED: dict[str, dict[str, Any]] = {
    "native": {},
    "classic": {"sidecar": {"placement": "classic"}},
    "cni": {"interception": "cni"},
    "secret": {"identity": "secret"},
    "overlaid": {"overlays": {"dumps": OVERLAY}, "defaultOverlays": ["dumps"]},
}


def _known(name: str = "native", *, roots: bytes = b"") -> InjectionInputs:
    said = {**CONFIGURED[name], "sidecar": {"image": "proxy:1", **CONFIGURED[name].get("sidecar", {})}}
    uuid = ProxyUuid("u-1") if name == "secret" else None
    return InjectionInputs(
        read(said, "config.yaml"), DriverRegistry.discover().drivers, roots=roots, uuid=uuid
    )


def _pod(**container: Any) -> dict[str, Any]:
    app = {"name": "app", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": "shop", "labels": {"app": "one"}},
        "spec": {
            "containers": [{**app, "livenessProbe": PROBE, **container}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }


def _made(known: InjectionInputs, pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as the webhook's answer makes it."""
    said = answer(known, SHOP, pod)
    assert said.result is Result.INJECTED, said.words
    made = copy.deepcopy(pod)
    for each in said.patch:
        _, part, field = each["path"].split("/")
        made[part][field] = json.loads(json.dumps(each["value"]))
    return made


def _running(known: InjectionInputs, pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as an API server has it: injected, with defaults and its account's token."""
    made = _made(known, pod)
    spec = made["spec"]
    for each in (*spec.get("initContainers", ()), *spec["containers"]):
        each |= {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
        path = "/var/run/secrets/kubernetes.io/serviceaccount"
        each.setdefault("volumeMounts", []).append({"name": ACCOUNT, "readOnly": True, "mountPath": path})
    for volume in spec["volumes"]:
        for source in {"projected", "downwardAPI", "configMap"} & set(volume):
            volume[source].setdefault("defaultMode", 420)
        for item in volume.get("downwardAPI", {}).get("items", ()):
            item["fieldRef"]["apiVersion"] = "v1"
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    spec["volumes"].append({"name": ACCOUNT, "projected": {"sources": [token], "defaultMode": 420}})
    spec["nodeName"] = "n1"
    made["metadata"]["uid"] = "4bb1"
    return made


def _copied(pod: dict[str, Any], *, init: bool = True, keep: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what kubectl sends; `keep` are the fields of the metadata that it is told to keep."""
    spec = copy.deepcopy(pod["spec"])
    del spec["nodeName"]
    if not init:
        del spec["initContainers"]
    for each in spec["containers"]:
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            each.pop(probe, None)
    spec["containers"].append({"name": "debugger-1", "image": "busybox", "stdin": True, "tty": True})
    about = {"name": "copy", "namespace": "shop", **{name: pod["metadata"][name] for name in keep}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def _author(spec: dict[str, Any]) -> dict[str, Any]:
    """Return what of a pod's spec is not of the injection."""
    lists = {name: spec.get(name, []) for name in ("initContainers", "containers", "volumes")}
    ours = ("meshwright-", "dumps")
    return {name: [each for each in of if not each["name"].startswith(ours)] for name, of in lists.items()}


def _ours(spec: dict[str, Any]) -> list[str]:
    lists = (spec.get(name, []) for name in ("initContainers", "containers", "volumes"))
    return [each["name"] for of in lists for each in of if each["name"].startswith(("meshwright-", "dumps"))]


@pytest.mark.parametrize("init", [True, False])
@pytest.mark.parametrize("name", CONFIGURED)
def test_a_copy_gets_a_sidecar_anew(name: str, init: bool) -> None:
    """As the pod did, once; what kubectl has added and kept of the pod stays as it sent it."""
    running = _running(_known(name), _pod())
    sent = _copied(running, init=init)
    made = _made(_known(name), sent)
    assert sorted(_ours(made["spec"])) == sorted(_ours(running["spec"]))
    assert _author(made["spec"]) == _author(sent["spec"])
    assert made["metadata"]["annotations"]["meshwright.dev/probes"] == "{}"
    assert answer(_known(name), SHOP, made).result is Result.UNCHANGED


def test_a_copy_may_be_of_another_configuration() -> None:
    """Of roots in the pod, and a placement, that are others by now: nothing of the old one is left."""
    running = _running(_known("classic", roots=b"-----BEGIN CERTIFICATE-----\n"), _pod())
    made = _made(_known(), _copied(running))
    assert [each["name"] for each in made["spec"]["containers"]] == ["app", "debugger-1"]
    wanted = _made(_known(), _pod())["spec"]["volumes"]
    assert [each for each in made["spec"]["volumes"] if each["name"] not in (ACCOUNT, "data")] == wanted[1:]


@pytest.mark.parametrize("name", ["native", "classic"])
def test_a_copy_asks_for_as_much_as_the_pod(name: str) -> None:
    """As a whole: the sidecar's share is there already. So it is with what it has been filled in for."""
    amounts = {"requests": {"cpu": "20m"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    for said in (amounts, {"requests": {"cpu": "20m"}}):
        pod = _pod()
        pod["spec"]["resources"] = said
        running = _running(_known(name), pod)
        made = _made(_known(name), _copied(running))
        assert made["spec"]["resources"] == running["spec"]["resources"] != said


@pytest.mark.parametrize(
    "asking",
    [
        {"lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 80}}}},
        {"lifecycle": {"postStart": {"httpGet": {"path": "/hi", "port": 80}}}},
    ],
)
def test_a_copy_that_still_asks_the_old_sidecar_is_told_how_to_be_made(asking: dict[str, Any]) -> None:
    """Its hooks lead to paths that nobody knows; with the annotations they are the author's again."""
    running = _running(_known(), _pod(**asking))
    refused = answer(_known(), SHOP, _copied(running))
    assert refused.result is Result.REFUSED
    (hook,) = asking["lifecycle"]
    assert refused.words.startswith(f"{hook} of container app calls the sidecar")
    assert "--keep-annotations --keep-labels" in refused.words
    made = _made(_known(), _copied(running, keep=("annotations", "labels")))
    assert json.loads(made["metadata"]["annotations"]["meshwright.dev/probes"]) == {
        f"/app-health/app/{hook.lower()}z": {**asking["lifecycle"][hook], "timeoutSeconds": 30}
    }


def test_a_native_sidecar_that_still_asks_is_told_as_well() -> None:
    """Of init containers kubectl keeps the probes."""
    pod = _pod()
    pod["spec"]["initContainers"] = [
        {"name": "log", "image": "log:1", "restartPolicy": "Always", "startupProbe": PROBE}
    ]
    said = answer(_known(), SHOP, _copied(_running(_known(), pod)))
    assert said.words.startswith("startupProbe of container log calls the sidecar")


def _strange(change: str) -> dict[str, Any]:
    sent = _copied(_running(_known(), _pod()))
    of = {each["name"]: each for part in ("initContainers", "volumes") for each in sent["spec"][part]}
    match change:
        case "command":
            of["meshwright-sidecar"]["command"] = ["sleep", "1d"]
        case "mount":
            of["meshwright-sidecar"]["volumeMounts"][2]["mountPath"] = "/elsewhere"
        case "interception":
            of["meshwright-init"]["command"] = ["sh"]
        case _:
            of["meshwright-run"].pop("emptyDir")
            of["meshwright-run"]["hostPath"] = {"path": "/run"}
    return sent


@pytest.mark.parametrize("change", ["command", "mount", "interception", "volume"])
def test_a_strangers_container_or_volume_is_not_taken_for_ours(change: str) -> None:
    """Neither is made anew: who made them shall say what they are."""
    said = answer(_known(), SHOP, _strange(change))
    assert said.result is Result.REFUSED
    assert "spec.volumes has a volume of one of the sidecar's names" in said.words


def test_a_copy_that_is_to_have_none_is_not_said_to_have_none() -> None:
    """It has one; and `uninject` takes it out."""
    sent = _copied(_running(_known(), _pod()))
    said = answer(_known(), NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "false"),)), sent)
    assert (said.result, said.patch) == (Result.SKIPPED, ())
    plain: Any = uninject(sent, "default").manifest
    assert _ours(plain["spec"]) == []
    assert _author(plain["spec"]) == _author(sent["spec"])
