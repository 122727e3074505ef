"""OSM's MeshConfig, config.openservicemesh.io v1alpha1 to v1alpha3.

The fields of `meshwright.mesh.config.MeshConfig` have an effect. Other fields of OSM and its successor are
known by name: any value is accepted, and one problem lists them as not used. Kubernetes silently drops other
fields; they are listed in one warning, and the rest of the object is in force. This is safe, because a
missing field never allows anything.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from meshwright.mesh.config import (
    VALIDITY,
    Exclusions,
    MeshConfig,
    SidecarDriverSettings,
    SidecarSettings,
    TlsVersion,
)
from meshwright.mesh.names import INTERFACE_RULE, InterfaceName, is_interface
from meshwright.mesh.problems.spelling import nearest
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.manifest import Manifest
from meshwright.specs.osm.gateway import gateway_certificate
from meshwright.specs.osm.servers import external_authorization, tracing
from meshwright.specs.osm.tls import cipher_suites, curves
from meshwright.specs.osm.unenforced_policy import not_enforced
from meshwright.specs.values.durations import life
from meshwright.specs.values.references import ranges

_CONNECTIONS: Final = "maxDataPlaneConnections"

_INSTEAD: Final = {
    "localProxyMode": (
        ("", "Localhost"),
        (
            "sidecars reach applications at 127.0.0.1; have each application listen on 127.0.0.1 or "
            "on all addresses, not only on the address of its Pod"
        ),
    ),
    _CONNECTIONS: (
        (0,),
        "to limit the number of connected proxies, use the setting max_streams of the server",
    ),
}
"""Fields for behaviour that sidecars lack: values that request nothing, and the alternative."""

NOT_USED = {
    "spec": ("clusterSet", "pluginChains", "repoServer"),
    "spec.sidecar": (
        "configResyncInterval",
        "enablePriviledgedInitContainer",
        "enablePrivilegedInitContainer",
        "localDNSProxy",
        "localProxyMode",
        _CONNECTIONS,
        "resources",
        "sidecarTimeout",
    ),
    "spec.traffic": (
        "http1PerRequestLoadBalancing",
        "http2PerRequestLoadBalancing",
        "interceptionMode",
        "serviceAccessMode",
        "useHTTPSIngress",
    ),
    "spec.observability": (
        "enableDebugServer",
        "osmLogLevel",
        "prometheusScraping",
        "remoteLogging",
    ),
    "spec.certificate": ("certKeyBitSize",),
    "spec.featureFlags": (
        "enableAccessCertPolicy",
        "enableAccessControlPolicy",
        "enableAsyncProxyServiceMapping",
        "enableEgressPolicy",
        "enableEnvoyActiveHealthChecks",
        "enableIngressBackendPolicy",
        "enableMeshRootCertificate",
        "enableMulticlusterMode",
        "enablePluginPolicy",
        "enableRetryPolicy",
        "enableSPIFFE",
        "enableSidecarActiveHealthChecks",
        "enableSnapshotCacheMode",
        "enableValidatingWebhook",
        "enableWASMStats",
    ),
}
"""Known fields without effect, by section."""

_NAMED: Final = 20
"""Maximum number of named fields without effect; further ones are counted."""

LOG_LEVELS = ("trace", "debug", "info", "warning", "warn", "error", "critical", "off")


def mesh_config(manifest: Manifest) -> MeshConfig:
    """Read a MeshConfig; missing fields get Meshwright's defaults."""
    # Without `manifest.spec()`, which refuses unknown fields beside `spec`: here they are only a warning.
    manifest.body.accept("apiVersion", "kind", "metadata", "status")
    spec = manifest.body.section("spec")
    sidecar, traffic = spec.section("sidecar"), spec.section("traffic")
    certificate = spec.section("certificate")
    observability, flags = spec.section("observability"), spec.section("featureFlags")
    drivers = sidecar.sections("sidecarDrivers")
    gateway = certificate.section("ingressGateway")
    secret = gateway.section("secret")
    asked, fields = traffic.section("inboundExternalAuthorization"), observability.section("tracing")
    result = MeshConfig(
        permissive=traffic.flag("enablePermissiveTrafficPolicyMode"),
        egress=traffic.flag("enableEgress"),
        service_certificate_validity=life(certificate, "serviceCertValidityDuration") or VALIDITY,
        sidecar=_sidecar(sidecar, drivers),
        authorization=external_authorization(asked),
        tracing=tracing(fields, manifest.namespace),
        exclusions=_exclusions(traffic),
        ingress_gateway=gateway_certificate(gateway, secret, manifest.namespace)
        if certificate.has("ingressGateway")
        else None,
        created=manifest.metadata.text("creationTimestamp") or "",
    )
    sections = (spec, sidecar, traffic, certificate, observability, flags)
    # First the known fields without effect, because the report of pruned fields lists all unread fields.
    _report_unused(manifest, sections, unenforced=_report_unenforced(sidecar))
    _report_pruned(manifest, (manifest.body, *sections, *drivers, asked, fields, gateway, secret))
    return result


def _report_unenforced(sidecar: Fields) -> tuple[str, ...]:
    """Warn of settings of the sidecar that Meshwright does not enforce; return the paths of their fields."""
    asked = [name for name, (nothing, _) in _INSTEAD.items() if sidecar.raw(name) not in (None, *nothing)]
    for name in asked:
        sidecar.notes.warn(Code.NOT_ENFORCED, sidecar.at(name), not_enforced(_INSTEAD[name][1]))
    return tuple(map(sidecar.at, asked))


def _report_unused(manifest: Manifest, sections: tuple[Fields, ...], unenforced: tuple[str, ...]) -> None:
    unused: list[str] = []
    for section in sections:
        names = NOT_USED[section.path]
        section.accept(*names)
        unused.extend(section.at(name) for name in names if section.has(name))
    if unused := sorted(set(unused) - set(unenforced)):
        manifest.notes.inform(
            Code.FIELDS_NOT_USED, "spec", f"these fields are known but ignored: {', '.join(unused)}"
        )


def _report_pruned(manifest: Manifest, sections: Sequence[Fields]) -> None:
    """Warn of the fields that a MeshConfig does not have, all in one problem."""
    pruned = [message for section in sections for message in _pruned(section, sections)]
    if pruned:
        more = f" and {len(pruned) - _NAMED} more" if len(pruned) > _NAMED else ""
        text = (
            "a MeshConfig does not have these fields, so they are ignored: "
            f"{', '.join(pruned[:_NAMED])}{more}"
        )
        manifest.notes.warn(Code.PRUNED, "", text)


def _pruned(section: Fields, sections: Sequence[Fields]) -> Iterator[str]:
    """Yield the unknown fields of a section, each with the right section or the nearest name."""
    for name in section.unasked():
        path = section.at(name if len(name) <= 60 else name[:57] + "...")
        # A field in the wrong section has its right name, so the sections are searched before similar
        # names.
        home = next((fields.path for fields in sections if fields.path and name in fields.keys_read()), "")
        near = nearest(name, section.keys_known())
        meant = f" (it belongs into {home})" if home else f" (did you mean {near}?)" if near else ""
        yield f"{path}{meant}"


def _exclusions(traffic: Fields) -> Exclusions:
    """Read the settings of traffic that bypasses proxies; an empty list of included ranges means all."""
    return Exclusions(
        inbound_ports=traffic.ports("inboundPortExclusionList"),
        outbound_ports=traffic.ports("outboundPortExclusionList"),
        ranges_included=ranges(traffic, "outboundIPRangeInclusionList") or None,
        ranges_excluded=ranges(traffic, "outboundIPRangeExclusionList"),
        interfaces=_interfaces(traffic, "networkInterfaceExclusionList"),
    )


def _interfaces(traffic: Fields, name: str) -> tuple[InterfaceName, ...]:
    """Return the network interfaces in a list field, sorted, each once."""
    interface_names = set()
    for path, item in traffic.items(name):
        if isinstance(item, str) and is_interface(item):
            interface_names.add(InterfaceName(item))
        else:
            traffic.notes.refuse(Code.WRONG_VALUE, path, INTERFACE_RULE, item)
    return tuple(sorted(interface_names))


def _sidecar(fields: Fields, drivers: Sequence[Fields]) -> SidecarSettings:
    default = SidecarSettings()
    low = _tls(fields, "tlsMinProtocolVersion", default.tls_min_version)
    high = _tls(fields, "tlsMaxProtocolVersion", default.tls_max_version)
    if low > high:
        fields.wrong(
            "tlsMinProtocolVersion", f"must not be higher than tlsMaxProtocolVersion, which is {high}"
        )
    return SidecarSettings(
        sidecar_class=fields.text("sidecarClass") or default.sidecar_class,
        drivers=tuple(map(_driver, drivers)),
        log_level=fields.choice("logLevel", LOG_LEVELS, default.log_level),
        linux_image=_image(fields, "sidecarImage", "envoyImage"),
        windows_image=_image(fields, "sidecarWindowsImage", "envoyWindowsImage"),
        init_image=fields.text("initContainerImage") or "",
        tls_min_version=low,
        tls_max_version=high,
        cipher_suites=cipher_suites(fields, "cipherSuites"),
        ecdh_curves=curves(fields, "ecdhCurves"),
    )


def _image(fields: Fields, name: str, older: str) -> str:
    """Return an image by its field name in OSM's successor, or else by the name in OSM."""
    newer, old = fields.text(name), fields.text(older)
    return newer or old or ""


def _tls(fields: Fields, name: str, default: TlsVersion) -> TlsVersion:
    rule = one_of((*TlsVersion, "TLS_AUTO"))
    text = fields.text(name, expected=rule)
    if text in (None, "", "TLS_AUTO"):
        return default
    if text not in tuple(TlsVersion):
        fields.wrong(name, rule)
        return default
    return TlsVersion(str(text))


def _driver(fields: Fields) -> SidecarDriverSettings:
    return SidecarDriverSettings(
        name=fields.required_text("sidecarName", "must be the name of a sidecar driver, for example envoy"),
        linux_image=fields.text("sidecarImage") or "",
        windows_image=_image(fields, "sidecarWindowsImage", "sidecarImageWindowsImage"),
        init_image=fields.text("initContainerImage") or "",
        proxy_server_port=fields.port("proxyServerPort"),
        disabled_mtls=fields.flag("sidecarDisabledMTLS"),
    )
