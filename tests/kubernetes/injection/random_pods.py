"""Random Pods of any kind, within bounds, from the schema of an API server (OpenAPI v3).

Most fields have a value in some Pods, fields of a oneof exactly one, and names and quantities have valid
forms. Many Pods are valid; the test asks the API server which ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as some
from hypothesis.strategies import DrawFn, SearchStrategy

Schema = Mapping[str, Any]
Values = SearchStrategy[Any]

CORE: Final = "io.k8s.api.core.v1."
_DEEPEST: Final = 7
_MOST: Final = 2
"""Fields that an object has besides those that it must have, and items of a list."""

_HANDLERS: Final = ("exec", "grpc", "httpGet", "tcpSocket")
_ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "Probe": _HANDLERS,
    "LifecycleHandler": ("exec", "httpGet", "sleep"),
    "EnvVarSource": ("configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"),
    "Volume": (
        "configMap",
        "downwardAPI",
        "emptyDir",
        "hostPath",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ),
    "VolumeProjection": ("downwardAPI", "serviceAccountToken"),
}
"""Fields of which there is exactly one."""
_NEVER: Final[Mapping[str, frozenset[str]]] = {
    "PodSpec": frozenset(
        {
            *("ephemeralContainers", "nodeName", "overhead", "priority", "resourceClaims", "resources"),
            *(
                "preemptionPolicy",
                "schedulingGates",
                "serviceAccount",
                "setHostnameAsFQDN",
                "volumes",
                "workloadRef",
            ),
            *("initContainers", "priorityClassName", "runtimeClassName", "hostUsers", "serviceAccountName"),
        }
    ),
    "Container": frozenset(
        {"resizePolicy", "volumeDevices", "volumeMounts", "restartPolicyRules", "restartPolicy"}
    ),
    "PodSecurityContext": frozenset({"sysctls", "windowsOptions"}),
    "SecurityContext": frozenset({"windowsOptions", "procMount"}),
    "EnvVarSource": frozenset({"fileKeyRef"}),
}
"""Fields that no new Pod may have, or not any value of; those of a Pod's own form are made apart."""

_LABEL: Final = some.sampled_from(["a", "b", "web", "x-1"])
_NUMBERS: Final = some.sampled_from([1, 2, 80, 1000, 8080])
_BY_NAME: Final[Mapping[str, Values]] = {
    "activeDeadlineSeconds": some.just(60),
    "capabilities": some.sampled_from([{"drop": ["ALL"]}, {"add": ["NET_ADMIN"]}]),
    "command": some.lists(some.sampled_from(["sh", "-c", "\u00e9\n"]), max_size=2),
    "configMap": some.just({"name": "a"}),
    "containerPort": some.sampled_from([80, 8080, 9090, 15020, 65535]),
    "dnsPolicy": some.sampled_from(["ClusterFirst", "Default", "ClusterFirstWithHostNet"]),
    "env": some.lists(
        some.fixed_dictionaries(
            {"name": some.sampled_from(["A", "B"])}, optional={"value": some.text(max_size=3)}
        ),
        max_size=2,
    ),
    "envFrom": some.just([{"configMapRef": {"name": "a"}, "prefix": "A_"}]),
    "exec": some.just({"command": ["true"]}),
    "fieldPath": some.sampled_from(["metadata.name", "metadata.uid"]),
    "grpc": some.fixed_dictionaries({"port": some.just(9090)}, optional={"service": _LABEL}),
    "host": some.sampled_from(["", "127.0.0.1", "example.com"]),
    "hostIP": some.just(""),
    "hostNetwork": some.sampled_from([False, False, False, True]),
    "hostPort": some.just(0),
    "image": some.sampled_from(["a:1", "b.example/c@sha256:" + 64 * "0"]),
    "imagePullPolicy": some.sampled_from(["Always", "IfNotPresent", "Never"]),
    "imagePullSecrets": some.lists(some.fixed_dictionaries({"name": _LABEL}), max_size=2),
    "lifecycle": some.just({"preStop": {"sleep": {"seconds": 1}}}),
    "mountPath": some.sampled_from(["/a", "/b/c"]),
    "nodeSelector": some.sampled_from([{}, {"kubernetes.io/os": "linux"}, {"kubernetes.io/os": "windows"}]),
    "os": some.sampled_from([{"name": "linux"}, {"name": "linux"}, {"name": "windows"}]),
    "path": some.sampled_from(["/", "/a?b=\u00e9", "a"]),
    "port": some.sampled_from([80, 8080, "web", "80"]),
    "resources": some.sampled_from([{}, {"limits": {"cpu": "1"}}, {"requests": {"memory": "1Mi"}}]),
    "restartPolicy": some.sampled_from(["Always", "Never", "OnFailure"]),
    "runAsUser": some.sampled_from([0, 1000, 1500]),
    "scheme": some.sampled_from(["HTTP", "HTTPS"]),
    "secret": some.just({"secretName": "a"}),
    "successThreshold": some.just(1),
    "terminationGracePeriodSeconds": some.sampled_from([1, 30]),
    "terminationMessagePath": some.just("/dev/end"),
    "terminationMessagePolicy": some.sampled_from(["File", "FallbackToLogsOnError"]),
    "tolerations": some.just([{"operator": "Exists"}]),
    "workingDir": some.just("/"),
}
"""What fields of a name may be."""

ANNOTATIONS: Final = some.dictionaries(
    some.sampled_from(
        [
            *("meshwright.dev/sidecar-placement", "meshwright.dev/interception-capture"),
            *("meshwright.dev/interception-ipv6", "openservicemesh.io/outbound-port-exclusion-list", "team"),
        ]
    ),
    some.sampled_from(["classic", "native", "tproxy", "true", "80, 81", "\u00e9"]),
    max_size=2,
)


@dataclass(frozen=True)
class Pods:
    """Strategies for Pods from the schemas of core/v1, by their names."""

    schemas: Mapping[str, Schema]
    made: dict[tuple[str, int], Values] = field(default_factory=dict)

    @property
    def any(self) -> Values:
        """Return a strategy for Pods."""
        return self._pod()

    def _pod(self) -> Values:
        @some.composite
        def pod(draw: DrawFn) -> dict[str, Any]:
            spec: dict[str, Any] = draw(self.of("PodSpec"))
            spec["containers"] = self._containers(draw, ["a", "b"], least=1)
            if first := self._containers(draw, ["first", "second"], least=0):
                for item in first:
                    _as_init(item, native=draw(some.booleans()))
                spec["initContainers"] = first
            if volumes := draw(some.lists(self.of("Volume"), max_size=_MOST, unique_by=lambda v: v["name"])):
                spec["volumes"] = volumes
                mounts = [{"name": each["name"], "mountPath": f"/v/{each['name']}"} for each in volumes]
                spec["containers"][0]["volumeMounts"] = mounts
            metadata = {"name": "any", "annotations": draw(ANNOTATIONS), "labels": {"app": draw(_LABEL)}}
            return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

        return pod()

    def _containers(self, draw: DrawFn, names: list[str], least: int) -> list[dict[str, Any]]:
        count = draw(some.integers(least, len(names)))
        result = [draw(self.of("Container")) for _ in range(count)]
        return [{**item, "name": name, "image": "a:1"} for item, name in zip(result, names, strict=False)]

    def of(self, name: str, depth: int = 0) -> Values:
        """Return a strategy for an object of core/v1."""
        if (name, depth) not in self.made:
            self.made[name, depth] = self._object(name, self.schemas[CORE + name], depth)
        return self.made[name, depth]

    def _object(self, name: str, schema: Schema, depth: int) -> Values:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        must = set(schema.get("required", ()))
        one = [item for item in _ONE_OF.get(name, ()) if item in properties]
        may = sorted(properties.keys() - must - set(one) - _NEVER.get(name, frozenset()))
        if name in ("Volume", "VolumeProjection"):
            may = []  # all of them are sources, of which there is one

        @some.composite
        def made(draw: DrawFn) -> dict[str, Any]:
            chosen = set(must) - {"containers"}
            if one:
                chosen.add(draw(some.sampled_from(one)))
            if may and depth < _DEEPEST:
                chosen |= set(draw(some.lists(some.sampled_from(may), max_size=_MOST, unique=True)))
            return {item: draw(self._value(item, properties[item], depth + 1)) for item in sorted(chosen)}

        return made()

    def _value(self, name: str, schema: Schema, depth: int) -> Values:
        """Return a strategy for the value of a field."""
        if name in _BY_NAME:
            return _BY_NAME[name]
        for item in (schema, *schema.get("allOf", ()), *schema.get("oneOf", ())):
            if "$ref" in item:
                return self._named(str(item["$ref"]).rpartition("/")[2], depth)
        match schema.get("type"):
            case "array":
                items = self._value(f"{name}[]", schema["items"], depth)
                return some.lists(items, min_size=1, max_size=_MOST, unique_by=repr)
            case "object":
                return some.dictionaries(_LABEL, _LABEL, max_size=_MOST)
            case "boolean":
                return some.booleans()
            case "integer" | "number":
                return _NUMBERS
            case _:
                return some.sampled_from(schema["enum"]) if "enum" in schema else _LABEL

    def _named(self, name: str, depth: int) -> Values:
        if not name.startswith(CORE):
            return (
                some.sampled_from(["1", 2]) if name.endswith(("Quantity", "IntOrString")) else some.just({})
            )
        return self.of(name.removeprefix(CORE), depth)


def _as_init(container: dict[str, Any], *, native: bool) -> None:
    """Convert a container to an init container: only a native sidecar may have probes and hooks."""
    if native:
        container["restartPolicy"] = "Always"
        return
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        container.pop(name, None)
