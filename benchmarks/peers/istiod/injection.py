"""istiod's injector: its default configuration, the pods of its tests, and requests to it."""

import base64
import copy
import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.in_kubernetes.objects import CONFIG_MAP, Object
from benchmarks.peers.istiod.objects import SYSTEM
from tools.real_parts.building import download
from tools.real_parts.parts import ISTIOD

Document = dict[str, Any]

_CHART: Final = "manifests/charts/istio-control/istio-discovery"
_TESTDATA: Final = "pkg/kube/inject/testdata/inject"
_PATHS: Final = (("spec", "jobTemplate", "spec", "template"), ("spec", "template"), ())
"""Paths of a pod's template in other objects; the first path with containers counts."""


def configuration() -> Object:
    """Return istiod's injection ConfigMap: the chart's default values and its only template."""
    chart = Path(download(ISTIOD)["Dir"]) / _CHART
    defaults = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))["_internal_defaults_do_not_set"]
    values = {name: defaults[name] for name in ("global", "revision", "sidecarInjectorWebhook")}
    values["pilot"] = {name: defaults[name] for name in ("cni", "env")}
    values["gateways"] = {
        name: defaults["gateways"].get(name) for name in ("securityContext", "seccompProfile")
    }
    template = (chart / "files" / "injection-template.yaml").read_text("utf-8").strip()
    config = {"defaultTemplates": ["sidecar"], "policy": "enabled", "templates": {"sidecar": template}}
    data = {"config": json.dumps(config), "values": json.dumps(values)}
    return Object(CONFIG_MAP, SYSTEM, "istio-sidecar-injector", {"data": data})


def pods() -> Iterator[tuple[str, Document]]:
    """Yield the pods of istiod's tests, by file name and, if a file has several, by number."""
    folder = Path(download(ISTIOD)["Dir"]) / _TESTDATA
    for file in sorted(folder.glob("*.yaml")):
        if not file.name.endswith(".iop.yaml"):
            documents = list(_documents(file.read_text("utf-8")))
            for number, document in enumerate(documents):
                yield f"{file.stem}{f' {number + 1}' if len(documents) > 1 else ''}", document


def names() -> frozenset[str]:
    """Return the names of istiod's test cases, with inputs of their own or with other options."""
    folder = Path(download(ISTIOD)["Dir"]) / _TESTDATA
    result = {path.name.removesuffix(".injected").removesuffix(".yaml") for path in folder.iterdir()}
    return frozenset(item for item in result if not item.endswith(".iop"))


def _documents(text: str) -> Iterator[Document]:
    for document in yaml.safe_load_all(text):
        for item in (document or {}).get("items", [document]):
            for path in _PATHS:
                pod = item or {}
                for name in path:
                    pod = pod.get(name) or {}
                if (pod.get("spec") or {}).get("containers"):
                    yield _as_kept(pod)
                    break


def _as_kept(pod: Document) -> Document:
    """Return a pod with `resources` in each container, which API servers add and patches rely on."""
    spec = {**pod["spec"]}
    for where in ("initContainers", "containers"):
        if spec.get(where):
            spec[where] = [{"resources": {}, **item} for item in spec[where]]
    return {"metadata": pod.get("metadata") or {}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the injector: the patched pod, or the same pod without a patch.

    `refused` is a reason for refusal.
    """

    pod: Document
    refused: str = ""


def review_pod(address: str, pod: Document, namespace: str) -> Answer:
    """Send an AdmissionReview for the creation of a pod to an injector, and return the response."""
    metadata = {"name": "asked", **pod["metadata"], "namespace": namespace}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
    request = {
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": namespace,
        "operation": "CREATE",
        "object": whole,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request("POST", "/inject", json.dumps(review), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())["response"]
    finally:
        connection.close()
    if not answer.get("allowed"):
        return Answer(whole, str(answer.get("status", {}).get("message") or answer))
    patch = json.loads(base64.b64decode(answer["patch"])) if answer.get("patch") else []
    return Answer(patched(whole, patch))


def patched(document: Document, operations: list[Mapping[str, Any]]) -> Document:
    """Return a document changed by a JSON patch of `add`, `remove` and `replace` (RFC 6902)."""
    result: Any = copy.deepcopy(document)
    for operation in operations:
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
        )
        into = result
        for name in path:
            into = into[int(name)] if isinstance(into, list) else into[name]
        if isinstance(into, list):
            at = len(into) if last == "-" else int(last)
            if operation["op"] != "add":
                del into[at]
            if operation["op"] != "remove":
                into.insert(at, operation["value"])
        elif operation["op"] == "remove":
            del into[last]
        else:
            into[last] = operation["value"]
    return dict(result)
