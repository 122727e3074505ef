"""Kubernetes' view of what runs: Pod, EndpointSlice and Endpoints.

Fields that are not used here may hold anything.
"""

import sys

from mesh.identity import ServiceIdentity
from mesh.kinds import Kind
from mesh.names import (
    IpAddress,
    Port,
    ProxyUuid,
    ServiceAccountName,
    ServiceName,
    is_dns_label,
    is_dns_subdomain,
)
from mesh.objects import EndpointSlice
from mesh.workload import PodTemplate, Workload, WorkloadKey, WorkloadPort
from specs.annotations import egress_services, interception
from specs.codes import Code
from specs.core.services import is_tcp
from specs.fields import Fields
from specs.manifest import LABEL_RULE, NAME_RULE, Manifest, sidecar_driver
from specs.references import ADDRESS_RULE, address, parse_address

UUID_LABELS = ("meshwright.dev/proxy-uuid", "osm-proxy-uuid")
"""Pod labels that hold the sidecar's UUID, the first one found counts."""

SERVICE_ANNOTATION = "meshwright.dev/service"
"""Pod annotation that names the primary service, where it is not called like the ServiceAccount."""

SERVICE_LABEL = "kubernetes.io/service-name"


def pod(manifest: Manifest) -> Workload | PodTemplate | None:
    """Read a Pod as a Workload intercepted transparently; one without IP is to come, an ended one none."""
    status = manifest.body.section("status")
    phase = status.text("phase")
    if phase in ("Succeeded", "Failed"):
        manifest.notes.inform(
            Code.NOT_USED, status.at("phase"), f"a Pod that has {phase.lower()} is not used"
        )
        return None
    if not status.text("podIP"):
        manifest.notes.inform(
            Code.NO_ADDRESS, status.at("podIP"), "is missing; not called until it has an IP"
        )
        return of_pods(manifest, manifest.key.kind, WorkloadKey(manifest.namespace, manifest.key.name))
    spec = manifest.body.section("spec")
    labels = manifest.labels()
    account = _account(spec)
    uuid = next((value for name in UUID_LABELS for key, value in labels if key == name), None)
    if uuid is not None and not is_dns_label(uuid):
        manifest.notes.refuse(Code.WRONG_VALUE, f"metadata.labels[{_uuid_label(labels)}]", LABEL_RULE, uuid)
    annotations = manifest.metadata.section("annotations")
    primary = annotations.text(SERVICE_ANNOTATION) or account
    if uuid is not None and not is_dns_label(primary):
        annotations.wrong(SERVICE_ANNOTATION, "must name the primary service by a DNS label")
    found = Workload(
        key=WorkloadKey(manifest.namespace, manifest.key.name),
        identity=ServiceIdentity(manifest.namespace, ServiceAccountName(account)),
        service=ServiceName(primary),
        address=address(status, "podIP") or IpAddress(""),
        uuid=None if uuid is None else ProxyUuid(uuid),
        ports=_container_ports(spec),
        labels=labels,
        interception=interception(annotations),
        driver=sidecar_driver(manifest),
        scope=egress_services(annotations),
        node=sys.intern(spec.text("nodeName") or ""),  # one of few, for many Pods
    )
    spec.skim("serviceAccount", "initContainers")
    status.skim("podIPs")
    return found


def of_pods(manifest: Manifest, kind: Kind, key: WorkloadKey) -> PodTemplate:
    """Read what is known of pods before they run; `kind` and `key` say what makes them."""
    annotations = manifest.metadata.section("annotations")
    interception(annotations)
    egress_services(annotations)
    sidecar_driver(manifest)
    spec = manifest.body.section("spec")
    found = PodTemplate(
        kind=kind,
        key=key,
        identity=ServiceIdentity(key.namespace, ServiceAccountName(_account(spec))),
        labels=manifest.labels(),
        ports=_container_ports(spec),
    )
    spec.skim("serviceAccount", "initContainers")
    return found


def _account(spec: Fields) -> str:
    """Read a pod's ServiceAccount by the field's name or its older one; it becomes part of a SPIFFE ID."""
    name = "serviceAccountName" if spec.text("serviceAccountName") else "serviceAccount"
    found = spec.text(name) or "default"
    if not is_dns_subdomain(found):
        spec.wrong(name, NAME_RULE)
    return found


def _uuid_label(labels: tuple[tuple[str, str], ...]) -> str:
    return next(name for name in UUID_LABELS if any(key == name for key, _ in labels))


def _container_ports(spec: Fields) -> tuple[WorkloadPort, ...]:
    found = set()
    for container in spec.sections("containers"):
        for port in container.sections("ports"):
            number = port.required_port("containerPort")
            if is_tcp(port):
                found.add(WorkloadPort(number, port.text("name") or ""))
            port.skim()
        container.skim()
    return tuple(sorted(found))


def endpoint_slice(manifest: Manifest) -> EndpointSlice | None:
    """Read a discovery.k8s.io EndpointSlice: the addresses that are ready."""
    labels = manifest.metadata.section("labels")
    service = labels.required_text(SERVICE_LABEL, "must name the slice's Service")
    body = manifest.body
    if body.choice("addressType", ("IPv4", "IPv6", "FQDN"), "IPv4") == "FQDN":
        manifest.notes.inform(Code.NOT_USED, "addressType", "a slice of host names is not used")
        return None
    addresses: set[str] = set()
    for endpoint in body.sections("endpoints"):
        conditions = endpoint.section("conditions")
        ready = conditions.flag("ready", default=True)
        found = _addresses(endpoint, endpoint.texts("addresses"))
        for each in (conditions, endpoint):
            each.skim()
        addresses.update(found if ready else ())
    ports = _slice_ports(body)
    body.skim()
    return EndpointSlice(
        service=service,
        namespace=manifest.namespace,
        name=manifest.key.name,
        addresses=tuple(sorted(addresses)),
        ports=ports,
    )


def endpoints(manifest: Manifest) -> EndpointSlice:
    """Read core Endpoints as one slice; its subsets must agree on their ports."""
    subsets = manifest.body.sections("subsets")
    ports = [_slice_ports(subset) for subset in subsets]
    if len(set(ports)) > 1:
        expected = "must have the same ports in every subset; write one EndpointSlice for each"
        manifest.body.wrong("subsets", expected)
    addresses = {
        found
        for subset in subsets
        for entry in subset.sections("addresses")
        for found in _addresses(entry, (entry.required_text("ip", ADDRESS_RULE),))
    }
    for each in (manifest.body, *subsets):
        each.skim()
    return EndpointSlice(
        service=manifest.key.name,
        namespace=manifest.namespace,
        name=manifest.key.name,
        addresses=tuple(sorted(addresses)),
        ports=ports[0] if ports else (),
    )


def _addresses(fields: Fields, texts: tuple[str, ...]) -> tuple[str, ...]:
    found = []
    for text in texts:
        parsed = parse_address(text)
        if parsed is not None:
            found.append(str(parsed))
        elif text:
            fields.notes.refuse(Code.WRONG_VALUE, fields.path, ADDRESS_RULE, text)
    return tuple(found)


def _slice_ports(fields: Fields) -> tuple[tuple[str, int], ...]:
    found: set[tuple[str, int]] = set()
    for section in fields.sections("ports"):
        number: Port | None = section.port("port")
        if number is not None and is_tcp(section):
            found.add((section.text("name") or "", int(number)))
        section.skim("appProtocol")
    return tuple(sorted(found))
