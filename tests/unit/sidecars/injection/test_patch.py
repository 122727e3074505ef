"""Tests of patched pods: golden files, refused pods, and restored pods.

`UPDATE_GOLDEN=1` rewrites `pods/*.yaml`.
"""

import copy
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.keys.material import PrivateKey, ProxyCertificate
from meshwright.agent.interception import options
from meshwright.agent.interception.ports import PortRange
from meshwright.agent.status.probes import GrpcProbe, HttpProbe, Probe, TcpProbe, read_probes
from meshwright.cli.commands.agent import agent as agent_command
from meshwright.cli.commands.intercept import script
from meshwright.cli.main import app
from meshwright.mesh.config import Exclusions, MeshConfig
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import InterfaceName, Namespace, Port
from meshwright.mesh.workload import Capture, Transparent
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.pod import (
    InjectorContext,
    OriginalProbe,
    Overlay,
    Placement,
    PodOs,
    PullPolicy,
    RulesOwner,
    TokenEnrolment,
)
from meshwright.sidecars.contract.selection import Selection
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.injection import names, probes
from meshwright.sidecars.injection.restoration import restored
from meshwright.sidecars.layout import STATUS_PORT, ProbeKind
from meshwright.specs.annotations import GATEWAY_ANNOTATION
from tests.meshes import values as a
from tests.tools import libyaml
from tests.tools.command_runner import CliRunner

PODS = Path(__file__).parent / "pods"
PROXY = ProxyName.parse("5b1c.store.shop")
IMAGES = Selection("envoy", "proxy:1", "proxy-windows:1", "init:1", 15128)
DOCUMENT = replace(IMAGES, driver="document", linux_image="reader:1", proxy_server_port=15129)
CERTIFICATE = ProxyCertificate(PROXY, "01", a.EPOCH, b"chain", PrivateKey(b"the key"))

PLAIN: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "store-0", "namespace": "shop", "labels": {"app": "store"}},
    "spec": {"containers": [{"name": "store", "image": "store:1", "ports": [{"containerPort": 8080}]}]},
}
PROBED: dict[str, Any] = {
    "metadata": {"name": "store-0", "annotations": {"team": "shop"}},
    "spec": {
        "initContainers": [
            {"name": "migrate", "image": "migrate:1"},
            {
                "name": "log-shipper",
                "image": "shipper:1",
                "restartPolicy": "Always",
                "startupProbe": {"exec": {"command": ["true"]}},
            },
        ],
        "containers": [
            {
                "name": "store",
                "image": "store:1",
                "ports": [{"name": "web", "containerPort": 8080}, {"name": "grpc", "containerPort": 9090}],
                "livenessProbe": {
                    "httpGet": {"path": "/live", "port": "web", "httpHeaders": [{"name": "x", "value": "y"}]},
                    "periodSeconds": 7,
                    "failureThreshold": 3,
                },
                "readinessProbe": {"grpc": {"port": 9090, "service": "store"}, "timeoutSeconds": 4},
                "startupProbe": {"httpGet": {"path": "/up", "port": 8443, "scheme": "HTTPS"}},
            },
            {
                "name": "cache",
                "image": "cache:1",
                "livenessProbe": {"exec": {"command": ["true"]}},
                "readinessProbe": {"tcpSocket": {"port": "6379"}},
                "startupProbe": {"httpGet": {"host": "192.0.2.1", "port": 80}},
            },
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
}


def context(pod: Any, **changes: Any) -> InjectorContext:
    """Return the webhook's context of a pod."""
    known = InjectorContext(
        pod=pod,
        os=PodOs.LINUX,
        namespace=Namespace("shop"),
        mesh_name="bookstore",
        control_plane_namespace=Namespace("meshwright-system"),
        proxy=PROXY,
        config=MeshConfig(),
        selection=IMAGES,
        bootstrap_certificate=CERTIFICATE,
        trust_bundle=b"roots",
    )
    return replace(known, **changes)


EXCLUSIONS = Exclusions(
    tuple(map(Port, range(9000, 9020))),
    (Port(5432), Port(3306)),
    ("10.0.0.0/8",),
    ("10.9.0.0/16",),
    (InterfaceName("net+"), InterfaceName("eth1")),
)
BOTH_FAMILIES = Exclusions(ranges_included=("10.0.0.0/8", "fd00::/8"), ranges_excluded=("fd00:1::/32",))
JOINING: dict[str, Any] = {"bootstrap_certificate": None, "proxy": None, "joining": TokenEnrolment()}
CNI: dict[str, Any] = {**JOINING, "rules_by": RulesOwner.CNI}
CLASSIC: dict[str, Any] = {"placement": Placement.CLASSIC}
LIFECYCLE: dict[str, Any] = {
    "postStart": {"exec": {"command": ["true"]}},
    "preStop": {"httpGet": {"path": "/bye", "port": "web"}},
}
OWN: dict[str, Any] = {
    "name": "meshwright-sidecar",
    "image": "auto",
    "env": [{"name": "MESHWRIGHT_ENVOY", "value": "/opt/envoy"}],
    "resources": {"limits": {"memory": "1Gi"}},
    "readinessProbe": {"exec": {"command": ["true"]}},
}
"""What an author says of the sidecar in the pod itself."""


def among(*more: Any, **spec: Any) -> dict[str, Any]:
    """Return the plain pod with more containers."""
    return {**PLAIN, "spec": {"containers": [*PLAIN["spec"]["containers"], *more], **spec}}


def hooked() -> dict[str, Any]:
    """Return a pod with a native sidecar that is probed, and containers with hooks."""
    ports = [{"name": "web", "containerPort": 8080}]
    container = {"name": "store", "image": "store:1", "ports": ports, "lifecycle": LIFECYCLE}
    shipper = {
        "name": "shipper",
        "image": "shipper:1",
        "restartPolicy": "Always",
        "startupProbe": {"tcpSocket": {"port": 24224}},
    }
    return {
        "metadata": {"generateName": "store-"},
        "spec": {"containers": [container], "initContainers": [shipper]},
    }


OVERLAYS = (
    Overlay(
        "debug",
        sidecar={
            "env": [{"name": "A", "value": "1"}],
            "livenessProbe": None,
            "resources": {"limits": {"cpu": "2"}},
        },
        interception={"securityContext": {"privileged": True}},
        volumes=(
            {"name": "dumps", "emptyDir": {}},
            {"name": "meshwright-run", "emptyDir": {"sizeLimit": "1Mi"}},
        ),
    ),
    Overlay("more", sidecar={"env": [{"name": "A", "$patch": "delete"}, {"name": "B", "value": "2"}]}),
)


def gateway_pod() -> dict[str, Any]:
    """Return a Pod whose one container serves a gateway."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "edge-0", "annotations": {GATEWAY_ANNOTATION: "edge"}},
        "spec": {"containers": [{"name": names.SIDECAR_CONTAINER, "image": "auto"}]},
    }


CASES: dict[str, tuple[SidecarDriver, InjectorContext]] = {
    "joining": (EnvoyDriver(), context(PLAIN, **JOINING, reason="label meshwright.dev/inject is true")),
    "joining-roots": (
        EnvoyDriver(),
        context(PLAIN, **{**JOINING, "joining": TokenEnrolment(roots=b"-----BEGIN CERTIFICATE-----\n")}),
    ),
    "joining-tproxy": (
        EnvoyDriver(),
        context(
            {"spec": {**PLAIN["spec"], "securityContext": {"fsGroup": 2000}}},
            **JOINING,
            interception=Transparent(Capture.TPROXY),
        ),
    ),
    "cni": (EnvoyDriver(), context(PLAIN, **CNI, exclusions=EXCLUSIONS)),
    "cni-classic-ipv6": (
        EnvoyDriver(),
        context(
            PROBED, **CLASSIC, **CNI, interception=Transparent(ipv6=True), resources={"limits": {"cpu": "1"}}
        ),
    ),
    "classic": (EnvoyDriver(), context(PROBED, **CLASSIC, **JOINING)),
    "hooks": (EnvoyDriver(), context(hooked(), **JOINING)),
    "own": (EnvoyDriver(), context(among(OWN), **JOINING)),
    "own-classic": (
        EnvoyDriver(),
        context(among(OWN, imagePullSecrets=[{"name": "a"}]), **CLASSIC, **JOINING),
    ),
    "gateway": (EnvoyDriver(), context(gateway_pod(), gateway="edge", **CLASSIC, **JOINING)),
    "overlays": (EnvoyDriver(), context(among(OWN), **JOINING, overlays=OVERLAYS)),
    "resources": (
        EnvoyDriver(),
        context(
            among(imagePullSecrets=[{"name": "a"}]),
            **JOINING,
            resources={"requests": {"cpu": "100m", "memory": "128Mi"}},
            pull_secrets=("a", "b"),
        ),
    ),
    "plain": (EnvoyDriver(), context(PLAIN)),
    "probes": (EnvoyDriver(), context(PROBED)),
    "exclusions": (EnvoyDriver(), context(PLAIN, exclusions=EXCLUSIONS)),
    "tproxy": (EnvoyDriver(), context(PLAIN, interception=Transparent(Capture.TPROXY))),
    "ipv6": (EnvoyDriver(), context(PLAIN, interception=Transparent(ipv6=True), exclusions=BOTH_FAMILIES)),
    "ipv6-by-address": (EnvoyDriver(), context(PLAIN, ipv6_by_address=True, exclusions=BOTH_FAMILIES)),
    "dry-run": (EnvoyDriver(), context(PLAIN, dry_run=True, image_pull_policy=PullPolicy.ALWAYS)),
    "document": (DocumentDriver(), context(PROBED, selection=DOCUMENT)),
    "document-classic": (DocumentDriver(), context(PROBED, selection=DOCUMENT, **CLASSIC)),
    "document-windows": (DocumentDriver(), context(PLAIN, selection=DOCUMENT, os=PodOs.WINDOWS)),
}


@pytest.mark.parametrize("name", CASES)
def test_patched_pod_equals_its_golden_file(name: str) -> None:
    """The comparison is by bytes, and the given pod stays unchanged."""
    driver, known = CASES[name]
    before = copy.deepcopy(known.pod)
    result = yaml.safe_dump(driver.patch(known), sort_keys=True)
    file = PODS / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(result)
    assert result == file.read_text()
    assert known.pod == before
    assert yaml.safe_dump(driver.patch(known), sort_keys=True) == result


@pytest.mark.parametrize("name", CASES)
def test_patched_pod_can_be_restored(name: str) -> None:
    """The pod is as its author wrote it, probes included; a pod without a patch stays unchanged."""
    driver, known = CASES[name]
    assert restored(driver.patch(known)) == known.pod
    assert restored(known.pod) == known.pod


@pytest.mark.parametrize("name", CASES)
def test_second_patch_of_a_pod_changes_nothing(name: str) -> None:
    """A webhook may be called again for a patched pod."""
    driver, known = CASES[name]
    once = driver.patch(known)
    assert driver.patch(replace(known, pod=once)) == once


def test_agent_and_intercept_read_the_options_and_probes_of_the_pod() -> None:
    """Arguments and annotations of the pod are valid for `meshwright agent` and `meshwright intercept`."""
    pod = EnvoyDriver().patch(context(PROBED))
    annotations = pod["metadata"]["annotations"]
    assert read_probes(libyaml.load(annotations[names.PROBES_ANNOTATION])) == {
        "/app-health/cache/readyz": Probe(TcpProbe(6379)),
        "/app-health/store/livez": Probe(HttpProbe(8080, "/live", headers=(("x", "y"),))),
        "/app-health/store/readyz": Probe(GrpcProbe(9090, "store"), 4.0),
        "/app-health/store/startupz": Probe(HttpProbe(8443, "/up", secure=True)),
    }
    sidecar = pod["spec"]["initContainers"][1]
    asked = {part for part in sidecar["args"] if part.startswith("--")}
    assert asked <= _options(agent_command.registered_callback)
    how = Transparent(Capture.TPROXY, ipv6=True)
    captured = EnvoyDriver().patch(context(PLAIN, exclusions=EXCLUSIONS, interception=how))
    init = captured["spec"]["initContainers"][0]
    (intercept,) = [
        registered_command
        for registered_command in app.registered_commands
        if registered_command.name == "intercept" or _named(registered_command)
    ]
    assert {part for part in init["args"] if part.startswith("--")} <= _options(intercept)
    given = init["args"][init["args"].index("--exclude-inbound-ports") + 1]
    assert [PortRange.parse(part).first for part in given.split(",")] == [*range(9000, 9020), STATUS_PORT]


@pytest.mark.parametrize("capture", Capture)
@pytest.mark.parametrize("excluded", [Exclusions(), EXCLUSIONS, BOTH_FAMILIES])
def test_cni_annotation_has_the_rules_of_the_init_container(capture: Capture, excluded: Exclusions) -> None:
    """The node's plugin sets the same rules. The init container gets `--probe` and checks them."""
    how = Transparent(capture, ipv6=excluded is BOTH_FAMILIES)
    known = context(PLAIN, **JOINING, interception=how, exclusions=excluded)
    by_itself: Any = EnvoyDriver().patch(known)
    answer: Any = EnvoyDriver().patch(replace(known, rules_by=RulesOwner.CNI))
    annotations = answer["metadata"]["annotations"]
    first, second = by_itself["spec"]["initContainers"][0], answer["spec"]["initContainers"][0]
    assert annotations[names.INTERCEPTION_ANNOTATION].split() == first["args"]
    assert second["args"] == ["--probe", *first["args"]]
    assert names.INTERCEPTION_ANNOTATION not in by_itself["metadata"]["annotations"]
    words = _as_typed(first["args"])
    assert script(options.read(annotations[names.INTERCEPTION_ANNOTATION])) == words


def _as_typed(arguments: list[str]) -> str:
    done = CliRunner().invoke(app, ("intercept", "--dry-run", *arguments))
    assert done.exit_code == 0
    return done.output


def _named(command: Any) -> bool:
    return command.callback is not None and command.callback.__name__ == "intercept"


def _options(command: Any) -> set[str]:
    """Return the options of a typer command by the names of its parameters, and those that it renames."""
    result = {f"--{name.replace('_', '-')}" for name in command.callback.__annotations__}
    return result | {"--run"}


def test_private_key_is_not_part_of_the_pod() -> None:
    """The key is only in the Secret, and hidden in printed values."""
    known = context(PLAIN)
    assert "the key" not in repr(known)
    assert "dGhlIGtleQ" not in yaml.safe_dump(EnvoyDriver().patch(known))


def _with(**spec: Any) -> dict[str, Any]:
    return {"spec": {**PLAIN["spec"], **spec}}


def _container(**fields: Any) -> dict[str, Any]:
    return _with(containers=[{"name": "store", **fields}])


def test_container_of_another_webhook_is_patched_and_kept() -> None:
    """Its probes go through the agent as well. Restoring the pod keeps it."""
    known = context(PLAIN, **JOINING)
    once = EnvoyDriver().patch(known)
    new: Any = {"name": "late", "image": "late:1", "livenessProbe": {"tcpSocket": {"port": 81}}}
    changed: Any = copy.deepcopy(once)
    changed["spec"]["containers"].insert(0, new)
    changed["spec"]["initContainers"].insert(0, {"name": "early", "image": "early:1"})
    again: Any = EnvoyDriver().patch(replace(known, pod=changed))
    late = again["spec"]["containers"][0]
    assert late["livenessProbe"]["httpGet"]["path"] == "/app-health/late/livez"
    assert [init_container["name"] for init_container in again["spec"]["initContainers"]] == [
        *("meshwright-init", "meshwright-sidecar", "early"),
    ]
    assert again["spec"]["volumes"] == once["spec"]["volumes"]
    result = restored(again)
    assert result["spec"]["containers"] == [new, *PLAIN["spec"]["containers"]]
    assert result["metadata"] == PLAIN["metadata"]


def test_later_changes_of_a_patched_pod_are_kept_when_restored() -> None:
    """Examples are a changed period, a probe of another kind, a deleted probe and another hook."""
    made: Any = EnvoyDriver().patch(context(PROBED, **JOINING))
    for store in (made["spec"]["containers"][0], wanted := copy.deepcopy(PROBED["spec"]["containers"][0])):
        store["livenessProbe"]["periodSeconds"] = 60
        store["readinessProbe"] = {"tcpSocket": {"port": 9090}}
        del store["startupProbe"]
    result: Any = restored(made)
    assert result["spec"]["containers"] == [wanted, PROBED["spec"]["containers"][1]]
    made = EnvoyDriver().patch(context(hooked(), **JOINING))
    made["spec"]["containers"][0]["lifecycle"]["postStart"] = {"exec": {"command": ["false"]}}
    result = restored(made)
    assert result["spec"]["containers"][0]["lifecycle"] == {
        "postStart": {"exec": {"command": ["false"]}},
        "preStop": LIFECYCLE["preStop"],
    }


@pytest.mark.parametrize("metadata", [None, {}, {"annotations": {}}, {"labels": {}, "name": "a"}])
@pytest.mark.parametrize("placement", [{}, CLASSIC])
def test_empty_lists_and_mappings_are_restored(metadata: Any, placement: Any) -> None:
    """They are the author's as well, and a second patch changes nothing."""
    container = {"name": "a", "image": "a:1"}
    spec = {"containers": [container], "initContainers": [], "volumes": [], "imagePullSecrets": []}
    pod: Any = {"spec": spec} if metadata is None else {"metadata": metadata, "spec": spec}
    patched = EnvoyDriver().patch(context(pod, **placement))
    assert EnvoyDriver().patch(context(patched, **placement)) == patched
    assert restored(patched) == pod


def test_renamed_container_with_a_patched_probe_cannot_be_restored() -> None:
    """Its original probe is unknown, and without the sidecar the patched one would fail."""
    for pod, field in ((PROBED, "livenessProbe"), (hooked(), "preStop")):
        made: Any = EnvoyDriver().patch(context(pod, **JOINING))
        made["spec"]["containers"][0]["name"] = "shop"
        with pytest.raises(CannotPatchError, match=f"{field} of container shop calls the sidecar"):
            restored(made)


def test_changed_notes_of_the_patch_are_refused() -> None:
    """The error names the annotation, because the original pod cannot be guessed."""
    for name, text in (
        (names.ADDED_ANNOTATION, "[]"),
        (names.ORIGINALS_ANNOTATION, "{"),
        (names.ORIGINALS_ANNOTATION, "[1]"),
        (names.ORIGINALS_ANNOTATION, "[" * 200000),
        (names.OWN_ANNOTATION, '[{"field": "volumes", "index": 0, "container": {}}]'),
    ):
        made = EnvoyDriver().patch(context(PLAIN, **JOINING))
        made["metadata"]["annotations"][name] = text
        with pytest.raises(CannotPatchError, match=f"annotation {name} was changed"):
            restored(made)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Windows": (PLAIN, {"os": PodOs.WINDOWS}, "on Windows the traffic of a pod cannot be intercepted"),
    "host network": (_with(hostNetwork=True), {}, "spec.hostNetwork is true"),
    "no containers": ({"spec": {}}, {}, "spec.containers is empty"),
    "the proxy's user": (_container(securityContext={"runAsUser": 1500}), {}, "runs as user 1500"),
    "the pod's user": (_with(securityContext={"runAsUser": 1500}), {}, "runs as user 1500"),
    "the proxy's administration": (
        _container(ports=[{"containerPort": 15000}]),
        {},
        "has port 15000, which the sidecar uses",
    ),
    "the proxy's port": (_container(ports=[{"containerPort": 15003}]), {}, "has port 15003"),
    "TPROXY's port": (
        _container(ports=[{"containerPort": 15006}]),
        {"interception": Transparent(Capture.TPROXY)},
        "has port 15006, which the sidecar uses",
    ),
    "a volume": (_with(volumes=[{"name": names.RUN_VOLUME}]), {}, "has a volume of one of the sidecar's"),
    "a port's name": (
        _container(livenessProbe={"httpGet": {"port": "web"}}),
        {},
        "livenessProbe of container store names port 'web'",
    ),
    "too early": (
        _with(initContainers=[{"name": "first", "startupProbe": {"grpc": {"port": 1}}}]),
        {"placement": Placement.CLASSIC},
        "init container first has a startupProbe over the network",
    ),
    "a hook's port": (
        _container(lifecycle={"preStop": {"httpGet": {"port": "web"}}}),
        {},
        "preStop of container store names port 'web'",
    ),
    "two of the sidecar's name": (
        among({"name": "meshwright-sidecar"}, initContainers=[{"name": "meshwright-sidecar"}]),
        {},
        "two containers are named meshwright-sidecar",
    ),
    "nothing but the sidecar": (_with(containers=[OWN]), {}, "spec.containers is empty"),
    "another user": (
        among({"name": "meshwright-sidecar", "securityContext": {"runAsUser": 1000}}),
        {},
        "would run as user 1000: must be 1500",
    ),
    "a sidecar that ends": (
        among({"name": "meshwright-sidecar", "restartPolicy": "Never"}),
        {},
        "container meshwright-sidecar would have restartPolicy Never: must be Always if the placement",
    ),
    "a classic one that is none": (
        among({"name": "meshwright-sidecar", "restartPolicy": "Always"}),
        CLASSIC,
        "restartPolicy Always: must be absent if the placement of the sidecar is classic",
    ),
    "rules for which nobody waits": (
        among(initContainers=[{"name": "meshwright-init", "restartPolicy": "Always"}]),
        {},
        "container meshwright-init would have restartPolicy Always: must be absent",
    ),
    "an overlay without image": (
        PLAIN,
        {"overlays": (Overlay("bad", sidecar={"image": None}),)},
        "container meshwright-sidecar has no image",
    ),
    "more than a pod can say": (
        {
            "metadata": {"annotations": {"team": "a" * 200_000}},
            **_container(livenessProbe={"httpGet": {"path": "/" + "a" * 50_000, "port": 1}}),
        },
        {},
        r"would have 3\d{5} bytes, but at most 262144 are allowed; .* meshwright.dev/[a-z-]*probes, with 5",
    ),
    "another label": (
        {**PLAIN, "metadata": {"labels": {names.PROXY_UUID_LABEL: "x"}}},
        {},
        "is 'x', but the proxy is 5b1c.store.shop",
    ),
    "no image": (
        PLAIN,
        {"selection": replace(IMAGES, linux_image="")},
        "no image is configured for the linux",
    ),
    "another's certificate": (
        PLAIN,
        {"proxy": ProxyName.parse("x.store.shop")},
        "is for 5b1c.store.shop, but the proxy is x.store.shop",
    ),
    "another namespace": (PLAIN, {"namespace": Namespace("else")}, "does not belong to namespace else"),
    "a port": (PLAIN, {"exclusions": Exclusions((Port(0),))}, "port 0 cannot be excluded"),
    "an interface": (
        PLAIN,
        {"exclusions": Exclusions(interfaces=(InterfaceName("lo"),))},
        "network interface 'lo' cannot be excluded: must be the name",
    ),
    "a range": (PLAIN, {"exclusions": Exclusions(ranges_excluded=("10.0.0.1/8",))}, "has host bits set"),
    "IPv6": (
        PLAIN,
        {"exclusions": Exclusions(ranges_excluded=("fd00::/8",))},
        "turns off the capture of IPv6",
    ),
    "everything": (
        PLAIN,
        {"exclusions": Exclusions(ranges_excluded=("0.0.0.0/0",))},
        "excludes all addresses",
    ),
    "nothing": (PLAIN, {"exclusions": Exclusions(ranges_included=())}, "included outbound ranges is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_pod_that_cannot_be_patched_is_refused_with_the_reason(name: str) -> None:
    """The error names the field and the cause."""
    pod, changes, words = REFUSED[name]
    with pytest.raises(CannotPatchError, match=words):
        EnvoyDriver().patch(context(pod, **changes))


def test_driver_without_interception_refuses_pods_that_configure_it() -> None:
    """The pod would not get what it asks for. A pod without such settings is patched."""
    known = context(PLAIN, selection=DOCUMENT)
    with pytest.raises(CannotPatchError, match="driver document cannot join by itself"):
        DocumentDriver().patch(replace(known, **JOINING))
    with pytest.raises(
        CannotPatchError, match="configure interception, but driver document does not intercept traffic"
    ):
        DocumentDriver().patch(replace(known, interception=Transparent(Capture.TPROXY)))
    assert restored(DocumentDriver().patch(known)) == PLAIN


def test_tproxy_sidecar_drops_root_and_all_capabilities_but_one() -> None:
    """The container starts with three capabilities.

    Its command switches to user 1500 and keeps only `net_raw`.
    """
    made = EnvoyDriver().patch(context(PLAIN, interception=Transparent(Capture.TPROXY)))
    sidecar = made["spec"]["initContainers"][1]
    command, security = sidecar["command"], sidecar["securityContext"]
    assert command[command.index("--reuid") + 1] == command[command.index("--regid") + 1] == "1500"
    assert command[command.index("--inh-caps") + 1] == "-all,+net_raw"
    assert command[command.index("--") + 1 :] == ["meshwright", "agent"]
    assert security["capabilities"] == {"add": ["NET_RAW", "SETGID", "SETUID"], "drop": ["ALL"]}
    assert security["allowPrivilegeEscalation"] is False


def test_original_probes_of_the_context_precede_those_of_the_pod() -> None:
    """The context has them if the pod's probes were rewritten earlier."""
    pod = _container(livenessProbe={"httpGet": {"path": "/changed", "port": 1}})
    original = OriginalProbe("store", ProbeKind.LIVENESS, {"tcpSocket": {"port": 8080}})
    patched = EnvoyDriver().patch(context(pod, original_probes=(original,)))
    assert libyaml.load(patched["metadata"]["annotations"][names.PROBES_ANNOTATION]) == {
        "/app-health/store/livez": {"tcpSocket": {"port": 8080}}
    }
    assert probes.originals(patched)[-1].probe == {
        "httpGet": {"path": "/app-health/store/livez", "port": STATUS_PORT, "scheme": "HTTP"}
    }
