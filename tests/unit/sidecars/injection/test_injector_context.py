"""Tests of the context of a pod before injection: precedence of settings, and invalid ones."""

import re
from dataclasses import replace
from typing import Any

import pytest

from meshwright.mesh.config import Exclusions, MeshConfig, SidecarDriverSettings, SidecarSettings
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import InterfaceName, Namespace, Port, ProxyUuid
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.workload import Capture, Transparent
from meshwright.sidecars.contract.errors import CannotPatchError, UnknownDriverError
from meshwright.sidecars.contract.kubernetes import Pod, Probe
from meshwright.sidecars.contract.pod import InjectorContext, OriginalProbe, Placement, PodOs, TokenEnrolment
from meshwright.sidecars.contract.selection import Selection
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.injection import scraping
from meshwright.sidecars.injection.context import (
    EXCLUDED_RANGES,
    INCLUDED_RANGES,
    OUTBOUND_PORTS,
    Injector,
    exclusions,
    injector_context,
)
from meshwright.sidecars.injection.names import INBOUND_PORTS, SIDECAR_CONTAINER
from meshwright.sidecars.injection.restoration import restored
from meshwright.sidecars.layout import ProbeKind

INJECTOR = Injector("mesh", Namespace("system"), {"envoy": 15128, "document": 15129}, trust_bundle=b"roots")
SHOP = NamespaceObject(Namespace("shop"))
DRIVER = "meshwright.dev/sidecar-driver"
CAPTURE = "meshwright.dev/interception-capture"
IPV6 = "meshwright.dev/interception-ipv6"
NODE_OS = {"nodeSelector": {"kubernetes.io/os": "windows"}}
PROBE: Probe = {"tcpSocket": {"port": 1}}
MESH_WIDE = Exclusions(
    (Port(9100),), (Port(6379),), ("10.0.0.0/8",), ("10.1.0.0/16",), (InterfaceName("eth1"),)
)
IMAGES = SidecarSettings(linux_image="proxy:1", init_image="init:1")


def pod(annotations: dict[str, str] | None = None, **spec: object) -> Any:
    """Return a pod."""
    containers = [{"name": "store", "readinessProbe": PROBE}]
    result: dict[str, Any] = {"metadata": {"name": "store-0"}, "spec": {"containers": containers, **spec}}
    if annotations:
        result["metadata"]["annotations"] = annotations
    return result


def context(of: Pod, config: MeshConfig | None = None, within: NamespaceObject = SHOP) -> InjectorContext:
    """Return the context of a pod."""
    return injector_context(INJECTOR, config or MeshConfig(), within, of, ProxyUuid("5b1c"))


def test_context_of_a_pod_without_annotations_has_all_defaults() -> None:
    """The whole value is compared."""
    assert context(pod()) == InjectorContext(
        pod=pod(),
        os=PodOs.LINUX,
        namespace=Namespace("shop"),
        mesh_name="mesh",
        control_plane_namespace=Namespace("system"),
        proxy=ProxyName.parse("5b1c.default.shop"),
        config=MeshConfig(),
        selection=Selection("envoy", "", "", "", 15128),
        trust_bundle=b"roots",
        original_probes=(OriginalProbe("store", ProbeKind.READINESS, PROBE),),
        ipv6_by_address=True,
    )


@pytest.mark.parametrize(
    ("mesh_wide", "annotations", "expected"),
    [
        (Exclusions(), {}, Exclusions()),
        (MESH_WIDE, {}, MESH_WIDE),
        (Exclusions(), {INBOUND_PORTS: "22, 9100,22"}, Exclusions((Port(22), Port(9100)))),
        (MESH_WIDE, {INBOUND_PORTS: ""}, MESH_WIDE),
        (
            MESH_WIDE,
            {
                INBOUND_PORTS: "22",
                OUTBOUND_PORTS: "6379,5432",
                INCLUDED_RANGES: "192.168.0.0/16",
                EXCLUDED_RANGES: "10.1.0.0/16, 10.2.0.0/16",
            },
            Exclusions(
                (Port(22), Port(9100)),
                (Port(5432), Port(6379)),
                ("10.0.0.0/8", "192.168.0.0/16"),
                ("10.1.0.0/16", "10.2.0.0/16"),
                (InterfaceName("eth1"),),
            ),
        ),
        (Exclusions(), {INCLUDED_RANGES: "10.0.0.0/8"}, Exclusions(ranges_included=("10.0.0.0/8",))),
    ],
)
def test_exclusions_of_the_pod_are_added_to_those_of_the_mesh(
    mesh_wide: Exclusions, annotations: dict[str, str], expected: Exclusions
) -> None:
    """Ports are sorted and unique; without included ranges, every address is included."""
    assert exclusions(mesh_wide, annotations) == expected


@pytest.mark.parametrize("text", ["0", "65536", "http", "80,,81", "1-9", "-1", "\u0661"])
def test_invalid_port_in_an_exclusion_is_refused_with_the_annotation(text: str) -> None:
    """A list that is only partly understood would leave a port captured that must not be."""
    with pytest.raises(
        CannotPatchError, match=r"annotation openservicemesh\.io/outbound-port-exclusion-list: "
    ):
        exclusions(Exclusions(), {OUTBOUND_PORTS: text})


@pytest.mark.parametrize(
    ("own", "namespaces", "mesh_s", "expected"),
    [
        ("", "", "", "envoy"),
        ("", "", "document", "document"),
        ("", "document", "envoy", "document"),
        ("envoy", "document", "document", "envoy"),
    ],
)
def test_driver_is_chosen_by_pod_then_namespace_then_mesh(
    own: str, namespaces: str, mesh_s: str, expected: str
) -> None:
    """The port is that of the driver's entry in the MeshConfig."""
    within = NamespaceObject(Namespace("shop"), annotations=((DRIVER, namespaces),) if namespaces else ())
    config = MeshConfig(
        sidecar=SidecarSettings(mesh_s, (SidecarDriverSettings(expected, proxy_server_port=7),))
    )
    result = context(pod({DRIVER: own} if own else {}), config, within)
    assert result.selection == Selection(expected, "", "", "", 7)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, PodOs.LINUX),
        ({"os": {"name": "windows"}}, PodOs.WINDOWS),
        (NODE_OS, PodOs.WINDOWS),
        ({"os": {"name": "linux"}, **NODE_OS}, PodOs.LINUX),
    ],
)
def test_operating_system_is_the_pods_or_its_node_selectors(spec: dict[str, Any], expected: PodOs) -> None:
    """The pod's own field takes precedence over the node selector, and Linux is the default."""
    assert context(pod(**spec)).os is expected


@pytest.mark.parametrize(
    ("annotations", "spec", "expected"),
    [
        ({}, {"serviceAccountName": "store"}, "5b1c.store.shop"),
        ({}, {"serviceAccount": "old"}, "5b1c.old.shop"),
        ({"meshwright.dev/service": "web"}, {"serviceAccountName": "store.v2"}, "5b1c.web.shop"),
    ],
)
def test_proxy_name_has_the_primary_service_of_the_pod(
    annotations: dict[str, str], spec: dict[str, Any], expected: str
) -> None:
    """The annotation takes precedence over the name of the ServiceAccount, as when the pod is read later."""
    assert str(context(pod(annotations, **spec)).proxy) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, Transparent()),
        ({CAPTURE: "tproxy"}, Transparent(Capture.TPROXY)),
        ({IPV6: "true"}, Transparent(ipv6=True)),
        ({CAPTURE: "redirect", IPV6: "false"}, Transparent()),
    ],
)
def test_interception_of_a_pod_is_set_by_annotations(
    annotations: dict[str, str], expected: Transparent
) -> None:
    """The control plane reads the same annotations of the running pod."""
    assert context(pod(annotations)).interception == expected


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (CAPTURE, "TPROXY", 'is "TPROXY": must be one of redirect, tproxy'),
        (IPV6, "yes", 'is "yes": must be "true" or "false"'),
    ],
)
def test_invalid_capture_is_refused_with_the_annotation(name: str, text: str, words: str) -> None:
    """The error has the annotation's name and the valid values."""
    with pytest.raises(CannotPatchError) as refused:
        context(pod({name: text}))
    assert str(refused.value) == f"metadata.annotations.{name} {words}"


def test_unknown_driver_system_or_service_is_refused() -> None:
    """None of them is guessed. An account with a dot needs an annotation for the service."""
    with pytest.raises(UnknownDriverError, match="'pipy' is unknown"):
        context(pod({DRIVER: "pipy"}))
    with pytest.raises(CannotPatchError, match="operating system 'plan9'"):
        context(pod(os={"name": "plan9"}))
    with pytest.raises(CannotPatchError, match=r"primary service 'store\.v2' is not a DNS label"):
        context(pod(serviceAccountName="store.v2"))


def test_exclusions_of_mesh_and_pod_are_arguments_of_the_init_container() -> None:
    """The patched pod has the exclusions of both."""
    config = MeshConfig(sidecar=IMAGES, exclusions=MESH_WIDE)
    patched = EnvoyDriver().patch(
        context(pod({OUTBOUND_PORTS: "5432", EXCLUDED_RANGES: "10.2.0.0/16"}), config)
    )
    assert patched["spec"]["initContainers"][0]["args"] == [
        *("--uid", "1500", "--ipv6-by-address"),
        *("--exclude-inbound-ports", "9100,15020"),
        *("--exclude-outbound-ports", "5432,6379"),
        *("--include-outbound-ranges", "10.0.0.0/8"),
        *("--exclude-outbound-ranges", "10.1.0.0/16,10.2.0.0/16"),
        *("--exclude-interfaces", "eth1"),
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, ["--ipv6-by-address", "10.1.0.0/16,fd00:1::/32"]),
        ("true", ["--ipv6", "10.1.0.0/16,fd00:1::/32"]),
        ("false", ["10.1.0.0/16"]),
    ],
)
def test_ipv6_is_captured_by_address_unless_the_pod_chooses(said: str | None, expected: list[str]) -> None:
    """Without capture of IPv6, IPv6 ranges of the mesh are dropped, because they have no effect."""
    wide = Exclusions(ranges_excluded=("10.1.0.0/16", "fd00:1::/32"))
    asked = {} if said is None else {"meshwright.dev/interception-ipv6": said}
    made = EnvoyDriver().patch(context(pod(asked), MeshConfig(sidecar=IMAGES, exclusions=wide)))
    result = made["spec"]["initContainers"][0]["args"]
    flags = [item for item in result if item.startswith("--ipv6")]
    assert [*flags, result[result.index("--exclude-outbound-ranges") + 1]] == expected


@pytest.mark.parametrize(
    ("version", "mesh_s", "own", "expected"),
    [
        (None, None, "", Placement.NATIVE),
        ((1, 28), None, "", Placement.CLASSIC),
        ((1, 29), None, "", Placement.NATIVE),
        ((1, 28), Placement.NATIVE, "", Placement.NATIVE),
        ((1, 33), Placement.CLASSIC, "", Placement.CLASSIC),
        ((1, 28), Placement.CLASSIC, "native", Placement.NATIVE),
        (None, None, "classic", Placement.CLASSIC),
    ],
)
def test_placement_is_that_of_pod_then_mesh_then_cluster_version(
    version: tuple[int, int] | None, mesh_s: Placement | None, own: str, expected: Placement
) -> None:
    """Native sidecars are the default for Kubernetes 1.29 and later, and for an unknown version."""
    injector = replace(INJECTOR, version=version, placement=mesh_s)
    of = pod({"meshwright.dev/sidecar-placement": own} if own else {})
    result = injector_context(injector, MeshConfig(), SHOP, of, ProxyUuid("5b1c"))
    assert result.placement is expected


OWN_SCRAPE = {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"}
SCRAPE = {"prometheus.io/scrape": "true", "prometheus.io/port": "15020", "prometheus.io/path": "/metrics"}


@pytest.mark.parametrize(
    ("namespace_s", "own", "expected"),
    [
        ("enabled", {}, SCRAPE),
        ("disabled", {}, {}),
        (None, {}, {}),
        ("enabled", {"prometheus.io/port": "9090"}, {"prometheus.io/port": "9090"}),
        ("enabled", {"prometheus.io/scrape": "false"}, {"prometheus.io/scrape": "false"}),
        ("enabled", OWN_SCRAPE, SCRAPE),
        ("disabled", OWN_SCRAPE, OWN_SCRAPE),
        (
            "enabled",
            OWN_SCRAPE | {"prometheus.io/scheme": "https"},
            OWN_SCRAPE | {"prometheus.io/scheme": "https"},
        ),
    ],
)
def test_scrape_annotations_are_added_if_the_namespace_enables_metrics(
    namespace_s: str | None, own: dict[str, str], expected: dict[str, str]
) -> None:
    """As with `osm metrics enable`, the author's annotations stay or are merged.

    They are restored when the patch is undone.
    """
    answer = () if namespace_s is None else (("openservicemesh.io/metrics", namespace_s),)
    of, config = pod(own), MeshConfig(sidecar=IMAGES)
    made = EnvoyDriver().patch(
        injector_context(INJECTOR, config, replace(SHOP, annotations=answer), of, ProxyUuid("5b1c"))
    )
    result = made["metadata"]["annotations"]
    assert {name: item for name, item in result.items() if name.startswith("prometheus.io/")} == expected
    assert restored(made)["metadata"].get("annotations", {}) == own
    again = injector_context(INJECTOR, config, replace(SHOP, annotations=answer), made, ProxyUuid("5b1c"))
    assert EnvoyDriver().patch(again) == made
    no_more = EnvoyDriver().patch(injector_context(INJECTOR, config, SHOP, made, ProxyUuid("5b1c")))
    assert {name for name in no_more["metadata"]["annotations"] if name.startswith("prometheus.io/")} == {
        *own
    }


@pytest.mark.parametrize(
    ("own", "url", "warned"),
    [
        ({"port": "9090"}, "http://127.0.0.1:9090/metrics", ""),
        ({"port": "9090", "path": "/a/b", "scheme": "http"}, "http://127.0.0.1:9090/a/b", ""),
        ({"port": "15020"}, "", ""),
        ({"port": "9090", "scheme": "https"}, "", "at port 9090, .*scheme is 'https'"),
        (
            {"port": "9090", "param_module": "x"},
            "",
            "at port 9090, .*param_module applies to the application",
        ),
        ({"port": "9090", "path": "metrics"}, "", "at port 9090, .*path is 'metrics'"),
        ({"port": "9090", "path": "/x y"}, "", "at port 9090, .*path is '/x y'"),
        ({}, "", "at a port of the application, .*port is ''"),
        ({"port": "0"}, "", "port is '0'"),
        ({"port": "65536"}, "", "port is '65536'"),
        ({"port": "²"}, "", "port is '²'"),
    ],
)
def test_agent_scrapes_the_applications_metrics_of_the_annotations(
    own: dict[str, str], url: str, warned: str
) -> None:
    """Annotations that cannot be merged stay unchanged, and there is a warning."""
    of = pod(
        {f"prometheus.io/{name}": value for name, value in own.items()} | {"prometheus.io/scrape": "true"}
    )
    space = replace(SHOP, annotations=(("openservicemesh.io/metrics", "enabled"),))
    result = injector_context(INJECTOR, MeshConfig(sidecar=IMAGES), space, of, ProxyUuid("5b1c"))
    made = EnvoyDriver().patch(result)
    (lines,) = (
        init_container["args"]
        for init_container in made["spec"]["initContainers"]
        if init_container["name"] == SIDECAR_CONTAINER
    )
    assert (
        lines[lines.index("--application-metrics") + 1] if "--application-metrics" in lines else ""
    ) == url
    assert restored(made)["metadata"]["annotations"] == of["metadata"]["annotations"]
    warnings = scraping.warnings(result, of)
    assert len(warnings) == bool(warned)
    assert all(re.search(warned, warning) for warning in warnings)


def test_scrape_that_the_sidecar_refuses_has_a_warning() -> None:
    """There is none if the port bypasses the sidecar or if the pod is not scraped."""
    past = {"openservicemesh.io/inbound-port-exclusion-list": "9090"}
    for own, count in ((OWN_SCRAPE, 1), (OWN_SCRAPE | past, 0), ({"prometheus.io/port": "9090"}, 0), ({}, 0)):
        result = injector_context(INJECTOR, MeshConfig(sidecar=IMAGES), SHOP, pod(own), ProxyUuid("5b1c"))
        warnings = scraping.warnings(result, pod(own))
        assert len(warnings) == count
        assert all("port 9090" in warning and "openservicemesh.io/metrics" in warning for warning in warnings)


def test_changed_note_of_scraping_is_refused() -> None:
    """Otherwise a changed note could add other annotations to the pod."""
    space = replace(SHOP, annotations=(("openservicemesh.io/metrics", "enabled"),))
    config = MeshConfig(sidecar=IMAGES)
    made = EnvoyDriver().patch(injector_context(INJECTOR, config, space, pod(OWN_SCRAPE), ProxyUuid("5b1c")))
    for text in ("7", "[]", "x", '{"prometheus.io/port": 7}', '{"meshwright.dev/inject": "false"}'):
        made["metadata"]["annotations"]["meshwright.dev/original-scraping"] = text
        with pytest.raises(CannotPatchError, match="original-scraping was changed"):
            restored(made)


def test_uuid_of_a_proxy_is_its_label_then_the_generated_one_or_the_uid() -> None:
    """A label of the pod takes precedence, whoever set it. A pod that joins with a token gets its UID."""
    label, config = "meshwright.dev/proxy-uuid", MeshConfig(sidecar=IMAGES)
    labelled = pod() | {"metadata": {"labels": {label: "mine"}}}
    made = ProxyUuid("5b1c")
    assert str(injector_context(INJECTOR, config, SHOP, labelled, made).proxy) == "mine.default.shop"
    joining = replace(INJECTOR, joining=TokenEnrolment())
    unknown = injector_context(joining, config, SHOP, pod(), None)
    assert unknown.proxy is None
    patched = EnvoyDriver().patch(unknown)
    assert patched["metadata"]["labels"][label] == "metadata.uid"
    assert injector_context(joining, config, SHOP, patched, None) == replace(unknown, pod=patched)
    mine = EnvoyDriver().patch(injector_context(INJECTOR, config, SHOP, pod(), made))
    again = injector_context(INJECTOR, config, SHOP, mine, ProxyUuid("other"))
    assert again.proxy is not None
    assert again.proxy.uuid == made
    with pytest.raises(CannotPatchError, match="is 'A_B': must be a DNS label"):
        context(pod() | {"metadata": {"labels": {label: "A_B"}}})


@pytest.mark.parametrize("name", [OUTBOUND_PORTS, "meshwright.dev/overlays", DRIVER])
def test_control_characters_in_annotations_of_the_mesh_are_refused(name: str) -> None:
    """Annotations of other programs may have them."""
    with pytest.raises(CannotPatchError, match=f"annotation {name} has a control character"):
        context(pod({name: "1\n2"}))
    assert context(pod({"example.com/notes": "1\n2"})).os is PodOs.LINUX
