"""Pods in, pods out: golden files, what is refused, and the way back.

`UPDATE_GOLDEN=1` rewrites `pods/*.yaml`.
"""

import copy
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.interception.ports import PortRange
from agent.status.probes import GrpcProbe, HttpProbe, Probe, TcpProbe, read_probes
from certs.material import PrivateKey, ProxyCertificate
from cli.commands.agent import agent as agent_command
from cli.main import app
from mesh.config import Exclusions, MeshConfig
from mesh.identity import ProxyName
from mesh.names import Namespace, Port
from mesh.workload import Capture, Transparent
from sidecars.contract.driver import SidecarDriver
from sidecars.contract.errors import AlreadyPatchedError, CannotPatchError
from sidecars.contract.pod import InjectorContext, OriginalProbe, PodOs, PullPolicy
from sidecars.document.driver import DocumentDriver
from sidecars.envoy.driver import EnvoyDriver
from sidecars.injection import names, probes
from sidecars.injection.patching import restored, secret
from sidecars.layout import STATUS_PORT, ProbeKind
from sidecars.selection import Selection
from tests.meshes import values as a

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
    """Return what a webhook would know of a pod."""
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
    tuple(map(Port, range(9000, 9020))), (Port(5432), Port(3306)), ("10.0.0.0/8",), ("10.9.0.0/16",)
)
BOTH_FAMILIES = Exclusions(ranges_included=("10.0.0.0/8", "fd00::/8"), ranges_excluded=("fd00:1::/32",))
CASES: dict[str, tuple[SidecarDriver, InjectorContext]] = {
    "plain": (EnvoyDriver(), context(PLAIN)),
    "probes": (EnvoyDriver(), context(PROBED)),
    "exclusions": (EnvoyDriver(), context(PLAIN, exclusions=EXCLUSIONS)),
    "tproxy": (EnvoyDriver(), context(PLAIN, interception=Transparent(Capture.TPROXY))),
    "ipv6": (EnvoyDriver(), context(PLAIN, interception=Transparent(ipv6=True), exclusions=BOTH_FAMILIES)),
    "dry-run": (EnvoyDriver(), context(PLAIN, dry_run=True, image_pull_policy=PullPolicy.ALWAYS)),
    "document": (DocumentDriver(), context(PROBED, selection=DOCUMENT)),
    "document-windows": (DocumentDriver(), context(PLAIN, selection=DOCUMENT, os=PodOs.WINDOWS)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_patched_pod_is_as_written_down(name: str) -> None:
    """Byte for byte; and the pod that was given is as it was."""
    driver, known = CASES[name]
    before = copy.deepcopy(known.pod)
    found = yaml.safe_dump(driver.patch(known), sort_keys=True)
    file = PODS / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(found)
    assert found == file.read_text()
    assert known.pod == before
    assert yaml.safe_dump(driver.patch(known), sort_keys=True) == found


@pytest.mark.parametrize("name", CASES)
def test_what_was_patched_can_be_taken_back(name: str) -> None:
    """The pod is its author's again, probes included; who was never patched is not changed."""
    driver, known = CASES[name]
    assert restored(driver.patch(known)) == known.pod
    assert restored(known.pod) == known.pod


@pytest.mark.parametrize("name", CASES)
def test_a_pod_is_not_patched_twice(name: str) -> None:
    """It is refused by a name of its own, so that a webhook can let it pass."""
    driver, known = CASES[name]
    with pytest.raises(AlreadyPatchedError):
        driver.patch(replace(known, pod=driver.patch(known)))


def test_the_agent_reads_the_probes_and_its_options() -> None:
    """What stands in the pod is what `meshwright agent` and `meshwright intercept` take."""
    pod = EnvoyDriver().patch(context(PROBED))
    annotations = pod["metadata"]["annotations"]
    assert read_probes(yaml.safe_load(annotations[names.PROBES_ANNOTATION])) == {
        "/app-health/cache/readyz": Probe(TcpProbe(6379)),
        "/app-health/store/livez": Probe(HttpProbe(8080, "/live", headers=(("x", "y"),))),
        "/app-health/store/readyz": Probe(GrpcProbe(9090, "store"), 4.0),
        "/app-health/store/startupz": Probe(HttpProbe(8443, "/up", secure=True)),
    }
    sidecar = pod["spec"]["containers"][0]
    asked = {part for part in sidecar["args"] if part.startswith("--")}
    assert asked <= _options(agent_command.registered_callback)
    how = Transparent(Capture.TPROXY, ipv6=True)
    captured = EnvoyDriver().patch(context(PLAIN, exclusions=EXCLUSIONS, interception=how))
    init = captured["spec"]["initContainers"][-1]
    (intercept,) = [each for each in app.registered_commands if each.name == "intercept" or _named(each)]
    assert {part for part in init["args"] if part.startswith("--")} <= _options(intercept)
    given = init["args"][init["args"].index("--exclude-inbound-ports") + 1]
    assert [PortRange.parse(part).first for part in given.split(",")] == [*range(9000, 9020), STATUS_PORT]


def _named(command: Any) -> bool:
    return command.callback is not None and command.callback.__name__ == "intercept"


def _options(command: Any) -> set[str]:
    """Return the options of a typer command by the names of its parameters, and those that it renames."""
    found = {f"--{name.replace('_', '-')}" for name in command.callback.__annotations__}
    return found | {"--run"}


def test_the_key_is_in_the_secret_alone() -> None:
    """The pod names it; in a dry run, and without a certificate, there is none to create."""
    known = context(PLAIN)
    assert "the key" not in repr(known)
    assert "dGhlIGtleQ" not in yaml.safe_dump(EnvoyDriver().patch(known))
    made = secret(known)
    assert made is not None
    assert made["metadata"]["name"] == "meshwright-proxy-5b1c"
    assert made["data"] == {"ca.pem": "cm9vdHM=", "proxy.key": "dGhlIGtleQ==", "proxy.pem": "Y2hhaW4="}
    assert secret(replace(known, dry_run=True)) is None
    assert secret(replace(known, bootstrap_certificate=None)) is None


def _with(**spec: Any) -> dict[str, Any]:
    return {"spec": {**PLAIN["spec"], **spec}}


def _container(**fields: Any) -> dict[str, Any]:
    return _with(containers=[{"name": "store", **fields}])


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Windows": (PLAIN, {"os": PodOs.WINDOWS}, "on Windows a pod's traffic cannot be led through a proxy"),
    "host network": (_with(hostNetwork=True), {}, "spec.hostNetwork is true"),
    "no containers": ({"spec": {}}, {}, "spec.containers is empty"),
    "the proxy's user": (_container(securityContext={"runAsUser": 1500}), {}, "runs as user 1500"),
    "the pod's user": (_with(securityContext={"runAsUser": 1500}), {}, "runs as user 1500"),
    "the proxy's administration": (
        _container(ports=[{"containerPort": 15000}]),
        {},
        "has port 15000, which is the sidecar's",
    ),
    "the proxy's port": (_container(ports=[{"containerPort": 15003}]), {}, "has port 15003"),
    "TPROXY's port": (
        _container(ports=[{"containerPort": 15006}]),
        {"interception": Transparent(Capture.TPROXY)},
        "has port 15006, which is the sidecar's",
    ),
    "a volume": (_with(volumes=[{"name": names.RUN_VOLUME}]), {}, "has a volume of one of the sidecar's"),
    "a port's name": (
        _container(livenessProbe={"httpGet": {"port": "web"}}),
        {},
        "livenessProbe of container store names port 'web'",
    ),
    "too early": (
        _with(initContainers=[{"name": "first", "startupProbe": {"grpc": {"port": 1}}}]),
        {},
        "init container first has a startupProbe over the network",
    ),
    "no image": (PLAIN, {"selection": replace(IMAGES, linux_image="")}, "no image is known for the linux"),
    "another's certificate": (PLAIN, {"proxy": ProxyName.parse("x.store.shop")}, "is of 5b1c.store.shop"),
    "another namespace": (PLAIN, {"namespace": Namespace("else")}, "is not of namespace else"),
    "a port": (PLAIN, {"exclusions": Exclusions((Port(0),))}, "port 0 cannot be excluded"),
    "a range": (PLAIN, {"exclusions": Exclusions(ranges_excluded=("10.0.0.1/8",))}, "has host bits set"),
    "IPv6": (PLAIN, {"exclusions": Exclusions(ranges_excluded=("fd00::/8",))}, "only IPv4 is captured"),
    "everything": (PLAIN, {"exclusions": Exclusions(ranges_excluded=("0.0.0.0/0",))}, "excludes everything"),
    "nothing": (PLAIN, {"exclusions": Exclusions(ranges_included=())}, "included outbound ranges is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name: str) -> None:
    """In words that say which field, and why."""
    pod, changes, words = REFUSED[name]
    with pytest.raises(CannotPatchError, match=words):
        EnvoyDriver().patch(context(pod, **changes))


def test_capture_is_for_drivers_that_capture() -> None:
    """A pod that asks another driver for it would not get what it asks for; without a word, it is patched."""
    known = context(PLAIN, selection=DOCUMENT)
    with pytest.raises(
        CannotPatchError, match="how its traffic is captured, and driver document captures none"
    ):
        DocumentDriver().patch(replace(known, interception=Transparent(Capture.TPROXY)))
    assert restored(DocumentDriver().patch(known)) == PLAIN


def test_tproxy_s_user_is_the_proxy_s() -> None:
    """The container begins as root with three rights, and its command leaves all but one of them behind."""
    made = EnvoyDriver().patch(context(PLAIN, interception=Transparent(Capture.TPROXY)))
    sidecar = made["spec"]["containers"][0]
    command, security = sidecar["command"], sidecar["securityContext"]
    assert command[command.index("--reuid") + 1] == command[command.index("--regid") + 1] == "1500"
    assert command[command.index("--inh-caps") + 1] == "-all,+net_raw"
    assert command[command.index("--") + 1 :] == ["meshwright", "agent"]
    assert security["capabilities"] == {"add": ["NET_RAW", "SETGID", "SETUID"], "drop": ["ALL"]}
    assert security["allowPrivilegeEscalation"] is False


def test_probes_that_were_rewritten_before_are_given_as_they_were() -> None:
    """The context's original probes win over what the pod says now."""
    pod = _container(livenessProbe={"httpGet": {"path": "/changed", "port": 1}})
    original = OriginalProbe("store", ProbeKind.LIVENESS, {"tcpSocket": {"port": 8080}})
    patched = EnvoyDriver().patch(context(pod, original_probes=(original,)))
    assert yaml.safe_load(patched["metadata"]["annotations"][names.PROBES_ANNOTATION]) == {
        "/app-health/store/livez": {"tcpSocket": {"port": 8080}}
    }
    assert probes.originals(patched)[1].probe == {
        "httpGet": {"path": "/app-health/store/livez", "port": STATUS_PORT, "scheme": "HTTP"}
    }
