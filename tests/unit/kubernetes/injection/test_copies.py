"""Tests of pods that `kubectl debug POD --copy-to=COPY` copies from injected pods.

By default kubectl 1.32 and later omits labels, annotations and the containers' probes; the flags `--keep-...`
keep them. The copy is made of the pod as stored by the API server.
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
    response = {**CONFIGURED[name], "sidecar": {"image": "proxy:1", **CONFIGURED[name].get("sidecar", {})}}
    uuid = ProxyUuid("u-1") if name == "secret" else None
    return InjectionInputs(
        read(response, "config.yaml"), DriverRegistry.discover().drivers, roots=roots, uuid=uuid
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
    """Return a pod after the webhook's patch."""
    response = answer(known, SHOP, pod)
    assert response.result is Result.INJECTED, response.words
    made = copy.deepcopy(pod)
    for item in response.patch:
        _, part, field = item["path"].split("/")
        made[part][field] = json.loads(json.dumps(item["value"]))
    return made


def _running(known: InjectionInputs, pod: dict[str, Any]) -> dict[str, Any]:
    """Return an injected pod as stored by an API server, with defaults and the account's token."""
    made = _made(known, pod)
    spec = made["spec"]
    for element in (*spec.get("initContainers", ()), *spec["containers"]):
        element |= {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
        path = "/var/run/secrets/kubernetes.io/serviceaccount"
        element.setdefault("volumeMounts", []).append({"name": ACCOUNT, "readOnly": True, "mountPath": path})
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
    """Return the copy that kubectl sends; `keep` are the fields of the metadata that are kept."""
    spec = copy.deepcopy(pod["spec"])
    del spec["nodeName"]
    if not init:
        del spec["initContainers"]
    for container in spec["containers"]:
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            container.pop(probe, None)
    spec["containers"].append({"name": "debugger-1", "image": "busybox", "stdin": True, "tty": True})
    about = {"name": "copy", "namespace": "shop", **{name: pod["metadata"][name] for name in keep}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def _author(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a pod's spec that is not from the injection."""
    lists = {name: spec.get(name, []) for name in ("initContainers", "containers", "volumes")}
    ours = ("meshwright-", "dumps")
    return {name: [item for item in of if not item["name"].startswith(ours)] for name, of in lists.items()}


def _ours(spec: dict[str, Any]) -> list[str]:
    lists = (spec.get(name, []) for name in ("initContainers", "containers", "volumes"))
    return [item["name"] for of in lists for item in of if item["name"].startswith(("meshwright-", "dumps"))]


@pytest.mark.parametrize("init", [True, False])
@pytest.mark.parametrize("name", CONFIGURED)
def test_copy_of_an_injected_pod_gets_one_new_sidecar(name: str, init: bool) -> None:
    """The copy has the same injected containers and volumes as the pod.

    Everything that kubectl added or kept of the author's stays as sent.
    """
    running = _running(_known(name), _pod())
    sent = _copied(running, init=init)
    made = _made(_known(name), sent)
    assert sorted(_ours(made["spec"])) == sorted(_ours(running["spec"]))
    assert _author(made["spec"]) == _author(sent["spec"])
    assert made["metadata"]["annotations"]["meshwright.dev/probes"] == "{}"
    assert answer(_known(name), SHOP, made).result is Result.UNCHANGED


def test_copy_follows_the_present_configuration() -> None:
    """The pod had roots of its own and a classic sidecar; the copy has neither."""
    running = _running(_known("classic", roots=b"-----BEGIN CERTIFICATE-----\n"), _pod())
    made = _made(_known(), _copied(running))
    assert [container["name"] for container in made["spec"]["containers"]] == ["app", "debugger-1"]
    wanted = _made(_known(), _pod())["spec"]["volumes"]
    assert [
        volume for volume in made["spec"]["volumes"] if volume["name"] not in (ACCOUNT, "data")
    ] == wanted[1:]


@pytest.mark.parametrize("name", ["native", "classic"])
def test_copy_has_the_same_pod_resources(name: str) -> None:
    """The pod's own resources already include the sidecar's share, so the share is not added again."""
    amounts = {"requests": {"cpu": "20m"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    for response in (amounts, {"requests": {"cpu": "20m"}}):
        pod = _pod()
        pod["spec"]["resources"] = response
        running = _running(_known(name), pod)
        made = _made(_known(name), _copied(running))
        assert made["spec"]["resources"] == running["spec"]["resources"] != response


@pytest.mark.parametrize(
    "asking",
    [
        {"lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 80}}}},
        {"lifecycle": {"postStart": {"httpGet": {"path": "/hi", "port": 80}}}},
    ],
)
def test_copy_with_hooks_for_the_old_sidecar_is_refused_with_the_remedy(asking: dict[str, Any]) -> None:
    """Without the annotations nothing maps the hooks' paths.

    With kept annotations and labels the author's hooks are restored.
    """
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


def test_copy_with_a_probed_native_sidecar_is_refused() -> None:
    """The copy still has the probes of init containers, which call the old sidecar."""
    pod = _pod()
    pod["spec"]["initContainers"] = [
        {"name": "log", "image": "log:1", "restartPolicy": "Always", "startupProbe": PROBE}
    ]
    response = answer(_known(), SHOP, _copied(_running(_known(), pod)))
    assert response.words.startswith("startupProbe of container log calls the sidecar")


def _strange(change: str) -> dict[str, Any]:
    sent = _copied(_running(_known(), _pod()))
    of = {item["name"]: item for part in ("initContainers", "volumes") for item in sent["spec"][part]}
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
def test_foreign_container_or_volume_with_our_name_is_refused(change: str) -> None:
    """A changed container or volume is not ours, so it is not replaced.

    Its author has to resolve the conflict.
    """
    response = answer(_known(), SHOP, _strange(change))
    assert response.result is Result.REFUSED
    assert "spec.volumes has a volume of one of the sidecar's names" in response.words


def test_copy_that_skips_injection_is_unchanged_although_it_has_a_sidecar() -> None:
    """A note that the pod has no sidecar would be false. `uninject` removes the sidecar of the copy."""
    sent = _copied(_running(_known(), _pod()))
    response = answer(
        _known(), NamespaceObject(Namespace("shop"), (("meshwright.dev/inject", "false"),)), sent
    )
    assert (response.result, response.patch) == (Result.SKIPPED, ())
    plain: Any = uninject(sent, "default").manifest
    assert _ours(plain["spec"]) == []
    assert _author(plain["spec"]) == _author(sent["spec"])
