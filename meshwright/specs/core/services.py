"""Core kinds Namespace, ServiceAccount and Service.

Kubernetes has hundreds of fields in these kinds; only the used ones are checked.
"""

import re
from collections.abc import Iterator
from typing import Final

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceAccountName, ServiceName, is_dns_label
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.service import Service, ServiceKey, ServicePort
from meshwright.specs.annotations import egress_services, escaped_slashes, permissive
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import LABEL_RULE, Manifest, sidecar_driver
from meshwright.specs.own.dns import dns_names
from meshwright.specs.values.protocols import BY_NAME, decide, declares_http2, declares_https
from meshwright.specs.values.references import ADDRESS_RULE, address, addresses

_OF_KUBE_PROXY = (
    ("internalTrafficPolicy", "Cluster"),
    ("sessionAffinity", "None"),
    ("trafficDistribution", ""),
)
"""Fields for kube-proxy only, with their defaults."""

TOPOLOGY_ANNOTATIONS: Final = (
    "service.kubernetes.io/topology-mode",
    "service.kubernetes.io/topology-aware-hints",
)
"""Annotations by which kube-proxy prefers endpoints of its own zone; the second is the older name."""

_OFF: Final = frozenset({"", "disabled"})

_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def namespace(manifest: Manifest) -> NamespaceObject:
    """Read a Namespace with its labels and annotations, including our own (see `specs.annotations`)."""
    if not is_dns_label(manifest.key.name):
        manifest.metadata.wrong("name", LABEL_RULE, Code.BAD_NAME)
    sidecar_driver(manifest)
    annotations = manifest.metadata.section("annotations")
    name, labels, pairs = Namespace(manifest.key.name), manifest.labels(), annotations.all_pairs()
    if manifest.notes.refused:  # values that are not text have been reported
        return NamespaceObject(name, labels, pairs)
    return NamespaceObject(name, labels, pairs, permissive(annotations), egress_services(annotations))


def service_account(manifest: Manifest) -> ServiceIdentity:
    """Read a ServiceAccount as an identity of workloads."""
    return ServiceIdentity(manifest.namespace, ServiceAccountName(manifest.key.name))


def service(manifest: Manifest) -> Service | None:
    """Read a Service, without ports other than TCP; a Service of type ExternalName is not used."""
    if not is_dns_label(manifest.key.name):
        manifest.metadata.wrong("name", LABEL_RULE, Code.BAD_NAME)
    spec = manifest.body.section("spec", required=True)
    if spec.text("type") == "ExternalName":
        manifest.notes.inform(
            Code.NOT_USED, spec.at("type"), "the mesh does not use Services of type ExternalName"
        )
        return None
    first = spec.text("clusterIP", expected=f"{ADDRESS_RULE}, or None for a headless Service")
    given = _parse_addresses(spec, first)
    headless = first == "None" or (not given and "None" in spec.texts("clusterIPs", ADDRESS_RULE))
    ports = _ports(spec)
    annotations = manifest.metadata.section("annotations")
    # Ports that are left out, for example for UDP, have a warning of their own.
    if not ports and not headless and manifest.notes.is_clean:
        manifest.notes.warn(
            Code.EMPTY,
            spec.at("ports"),
            "is empty, so clients cannot call this Service; add at least one port",
        )
    result = Service(
        key=ServiceKey(manifest.namespace, ServiceName(manifest.key.name)),
        ports=ports,
        selector=spec.pairs("selector"),
        cluster_ip=given[0] if given and not headless else None,
        headless=headless,
        other_addresses=() if headless else given[1:],
        publish_not_ready=spec.flag("publishNotReadyAddresses"),
        dns_names=dns_names(annotations, ports),
        escaped_slashes=escaped_slashes(annotations),
        created=manifest.metadata.text("creationTimestamp") or "",
        without_effect=(*_without_effect(spec), *_nearness(annotations)),
        ingress=tuple(_ingress(manifest.body.section("status"))),
    )
    spec.skim("externalTrafficPolicy", "sessionAffinityConfig")
    return result


def _ingress(status: Fields) -> Iterator[str]:
    """Yield the addresses and host names of the load balancer in front of a Service."""
    balancer = status.section("loadBalancer")
    for section in balancer.sections("ingress"):
        yield from (text for name in ("ip", "hostname") if (text := section.text(name)))
        section.skim()
    balancer.skim()
    status.skim()


def _without_effect(spec: Fields) -> Iterator[tuple[str, str]]:
    """Yield the fields by which kube-proxy chooses an endpoint, if they differ from the default.

    In a mesh the sidecars choose endpoints instead. Other values than text are left to the API server, which
    refuses them.
    """
    for name, default in _OF_KUBE_PROXY:
        value = spec.raw(name)
        if isinstance(value, str) and value not in ("", default):
            yield name, value
    external = spec.raw("externalIPs")
    if isinstance(external, list) and external:
        yield "externalIPs", ", ".join(map(str, external))


def _nearness(annotations: Fields) -> Iterator[tuple[str, str]]:
    """Yield the annotations by which kube-proxy prefers near endpoints, each with its path in the object."""
    for name in TOPOLOGY_ANNOTATIONS:
        value = annotations.raw(name)
        if isinstance(value, str) and value.lower() not in _OFF:
            yield f"metadata.annotations[{name}]", value


def _parse_addresses(spec: Fields, cluster_ip: str | None) -> tuple[IpAddress, ...]:
    """Return the addresses of a Service, each once in canonical form; `cluster_ip` is its `clusterIP`."""
    first = None if cluster_ip in (None, "", "None") else address(spec, "clusterIP")
    texts = tuple(text for text in spec.texts("clusterIPs", ADDRESS_RULE) if text not in ("", "None"))
    every = addresses(spec, "clusterIPs", texts)
    return tuple(dict.fromkeys(every if first is None else (first, *every)))


def _ports(spec: Fields) -> tuple[ServicePort, ...]:
    """Return the ports of a Service, sorted by number; of two with the same number the first counts."""
    service_ports: dict[Port, ServicePort] = {}
    for section in spec.sections("ports"):
        number = section.required_port("port")
        if not is_tcp(section):
            section.notes.warn(
                Code.NOT_TCP,
                section.at("protocol"),
                "is not TCP; the port is left out of the mesh, because sidecars carry only TCP. "
                "Traffic to this port bypasses the sidecars",
                section.raw("protocol"),
            )
        # Invalid numbers are read as port 1, so after an error equal numbers need not be duplicates.
        elif number in service_ports and not section.notes.refused:
            section.notes.drop(
                Code.DUPLICATE,
                section.at("port"),
                "must differ from the other ports; the first port with this number is used, "
                "this one is left out",
                number,
            )
        else:
            service_ports[number] = _port(section, number)
    return tuple(service_ports[number] for number in sorted(service_ports))


def _port(fields: Fields, number: Port) -> ServicePort:
    name = fields.text("name") or ""
    app_protocol = fields.text("appProtocol")
    # Only a warning: Kubernetes allows further values, and a sidecar can carry any protocol as TCP.
    if app_protocol and app_protocol.lower() not in BY_NAME:
        fields.notes.warn(
            Code.UNKNOWN_PROTOCOL,
            fields.at("appProtocol"),
            f"is unknown, so the port is treated as tcp; the known values are {', '.join(sorted(BY_NAME))}",
            app_protocol,
        )
    protocol, source = decide(app_protocol, name, number)
    http2 = declares_http2(app_protocol, name)
    secure, target = declares_https(app_protocol), _target_port(fields, number)
    service_port = ServicePort(number, target, protocol, name, source, http2, secure)
    fields.skim()
    return service_port


def _target_port(fields: Fields, default: Port) -> Port | str:
    """Return the port of the workloads; 0 and an empty text count as missing, as in Kubernetes."""
    value = fields.raw("targetPort")
    if not isinstance(value, str):
        number = fields.whole("targetPort", 0, 65535)
        return Port(number) if number else default
    if not value:
        return default
    if not _PORT_NAME.fullmatch(value):
        fields.wrong(
            "targetPort",
            "must be a port number without quotes, or the name of a container port (at least one letter)",
        )
    return value


def is_tcp(fields: Fields) -> bool:
    """Return whether a port's transport protocol is TCP, which is the default."""
    return fields.choice("protocol", ("TCP", "UDP", "SCTP"), "TCP") == "TCP"
