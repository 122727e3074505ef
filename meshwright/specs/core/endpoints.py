"""Kubernetes' kinds for running workloads: Pod, EndpointSlice and Endpoints.

Other fields may have any value.
"""

import sys
from collections.abc import Iterable

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import (
    IpAddress,
    Port,
    ProxyUuid,
    ServiceAccountName,
    ServiceName,
    is_dns_label,
    is_dns_subdomain,
)
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.workload import (
    Edge,
    Health,
    Interception,
    PodTemplate,
    Workload,
    WorkloadKey,
    WorkloadPort,
)
from meshwright.specs.annotations import (
    GATEWAY_ANNOTATION,
    OWN_UID,
    SERVICE_ANNOTATION,
    UUID_LABELS,
    egress_services,
    interception,
)
from meshwright.specs.codes import Code
from meshwright.specs.core.services import is_tcp
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import LABEL_RULE, NAME_RULE, Manifest, sidecar_driver
from meshwright.specs.quotes import never
from meshwright.specs.values.references import ADDRESS_RULE, address, parse_address

SERVICE_LABEL = "kubernetes.io/service-name"

READY = "Ready"
"""Condition of a Pod that decides whether the Pod receives requests."""


def pod(manifest: Manifest) -> Workload | PodTemplate | None:
    """Return a Pod as a Workload with transparent interception.

    A Pod without an IP address is returned as a PodTemplate, and a Pod that has ended as None.
    """
    status = manifest.body.section("status")
    phase = status.text("phase")
    if phase in ("Succeeded", "Failed"):
        manifest.notes.inform(
            Code.NOT_USED, status.at("phase"), f"the Pod has {phase.lower()}, so the mesh does not use it"
        )
        return None
    if not status.text("podIP"):
        manifest.notes.inform(
            Code.NO_ADDRESS,
            status.at("podIP"),
            "is missing; the Pod gets requests only after it has an IP address",
        )
        return of_pods(manifest, manifest.key.kind, WorkloadKey(manifest.namespace, manifest.key.name))
    return _running_pod(manifest, status)


def _running_pod(manifest: Manifest, status: Fields) -> Workload:
    spec = manifest.body.section("spec")
    labels = manifest.labels()
    account = _account(spec)
    on_host = spec.flag("hostNetwork")
    uuid = _uuid(manifest, labels)
    annotations = manifest.metadata.section("annotations")
    named = annotations.text(SERVICE_ANNOTATION)
    primary = named or account
    # Only with a sidecar, because the primary service is part of the common name of the proxy's
    # certificate.
    if uuid is not None and not is_dns_label(primary):
        annotations.wrong(
            SERVICE_ANNOTATION,
            "must be the name of the primary Service: a DNS label of 1 to 63 characters a-z, "
            "0-9 and inner hyphens",
        )
    own, others = address(status, "podIP") or IpAddress(""), _other_addresses(status)
    workload = Workload(
        key=WorkloadKey(manifest.namespace, manifest.key.name),
        identity=ServiceIdentity(manifest.namespace, ServiceAccountName(account)),
        service=ServiceName(primary),
        address=own,
        uuid=None if uuid is None else ProxyUuid(uuid),
        ports=_container_ports(spec),
        labels=labels,
        interception=_interception(annotations, (own, *others)),
        driver=sidecar_driver(manifest),
        scope=egress_services(annotations),
        node=sys.intern(spec.text("nodeName") or ""),  # many Pods share few node names
        health=_health(manifest, status),
        other_addresses=others,
        shares_address=on_host and uuid is None,
        names_service=bool(named),
        uid=manifest.metadata.text("uid") or "",
        created=manifest.metadata.text("creationTimestamp") or "",
    )
    spec.skim("serviceAccount")
    status.skim()
    return workload


def _interception(annotations: Fields, addresses: tuple[IpAddress, ...]) -> Interception:
    """Return the gateway that the sidecar of a Pod serves, or else how its traffic is intercepted."""
    intercepted = interception(annotations, addresses)
    gateway = annotations.text(GATEWAY_ANNOTATION, expected=NAME_RULE, fits=is_dns_subdomain)
    if gateway is not None and not is_dns_subdomain(gateway):
        annotations.wrong(GATEWAY_ANNOTATION, NAME_RULE)
    return Edge(gateway) if gateway else intercepted


def _uuid(manifest: Manifest, labels: tuple[tuple[str, str], ...]) -> str | None:
    """Return the UUID of a Pod's sidecar: the value of a label, or the Pod's own UID."""
    uid = manifest.metadata.text("uid") or ""
    label = next((name for name in UUID_LABELS for key, _ in labels if key == name), None)
    if label is None:
        return None
    text = dict(labels)[label]
    result = uid if text == OWN_UID else text
    if not is_dns_label(result):
        rule = (
            "can be used only if the Pod has a metadata.uid; write a UUID here instead"
            if text == OWN_UID
            else f"{LABEL_RULE}, or {OWN_UID}"
        )
        manifest.notes.refuse(Code.WRONG_VALUE, f"metadata.labels[{label}]", rule, text)
    return result


def _health(manifest: Manifest, status: Fields) -> Health:
    """Return the health of a Pod from its condition Ready and its deletionTimestamp.

    A Pod without the condition is not ready yet, as in Kubernetes' EndpointSlice controller.
    """
    statuses = {section.text("type"): section.text("status") for section in status.sections("conditions")}
    is_ending = manifest.metadata.raw("deletionTimestamp") is not None
    if statuses.get(READY) != "True":
        return Health.UNREADY
    return Health.DRAINING if is_ending else Health.READY


def _other_addresses(status: Fields) -> tuple[IpAddress, ...]:
    """Return the addresses of a dual-stack Pod after the first one, which `podIP` has too."""
    first = parse_address(status.text("podIP") or "")
    result = (
        ip_address
        for ip in status.sections("podIPs")
        for ip_address in _addresses(ip, (ip.text("ip") or "",))
    )
    return tuple(dict.fromkeys(ip_address for ip_address in result if ip_address != first))


def of_pods(manifest: Manifest, kind: Kind, key: WorkloadKey) -> PodTemplate:
    """Return the properties of Pods before they run; `kind` and `key` name their controller."""
    annotations = manifest.metadata.section("annotations")
    # Read only for their problems; their values are used for running Pods.
    interception(annotations)
    egress_services(annotations)
    sidecar_driver(manifest)
    spec = manifest.body.section("spec")
    pod_template = PodTemplate(
        kind=kind,
        key=key,
        identity=ServiceIdentity(key.namespace, ServiceAccountName(_account(spec))),
        labels=manifest.labels(),
        ports=_container_ports(spec),
    )
    spec.skim("serviceAccount")
    return pod_template


def _account(spec: Fields) -> str:
    """Return a Pod's ServiceAccount, from the field or its older name.

    The name is checked, because it becomes part of a SPIFFE ID.
    """
    name = "serviceAccountName" if spec.text("serviceAccountName") else "serviceAccount"
    result = spec.text(name) or "default"
    if not is_dns_subdomain(result):
        spec.wrong(name, NAME_RULE)
    return result


def _container_ports(spec: Fields) -> tuple[WorkloadPort, ...]:
    """Return the ports of containers, and of sidecars among the init containers."""
    workload_ports = set()
    begun = spec.sections("initContainers")
    stay = [fields for fields in begun if fields.text("restartPolicy") == "Always"]
    for container in (*spec.sections("containers"), *stay):
        for port in container.sections("ports"):
            number = port.required_port("containerPort")
            if is_tcp(port):
                workload_ports.add(WorkloadPort(number, port.text("name") or ""))
            port.skim()
        container.skim("restartPolicyRules")
    return tuple(sorted(workload_ports))


def endpoint_slice(manifest: Manifest) -> EndpointSlice | None:
    """Return a discovery.k8s.io EndpointSlice: the addresses, with the health of each.

    An address with several entries has the best health of them.
    """
    labels = manifest.metadata.section("labels")
    service = labels.required_text(SERVICE_LABEL, "must be the name of the Service of this EndpointSlice")
    body = manifest.body
    if body.choice("addressType", ("IPv4", "IPv6", "FQDN"), "IPv4") == "FQDN":
        manifest.notes.inform(
            Code.NOT_USED,
            "addressType",
            "the mesh does not use EndpointSlices of host names, only of IP addresses",
        )
        return None
    result: dict[Health, set[IpAddress]] = {health: set() for health in Health}
    zones: dict[Health, dict[IpAddress, str]] = {health: {} for health in Health}
    for endpoint in body.sections("endpoints"):
        conditions = endpoint.section("conditions")
        there = _addresses(endpoint, endpoint.texts("addresses", ADDRESS_RULE))
        health = _sliced_health(conditions)
        result[health].update(there)
        if zone := endpoint.text("zone"):
            zones[health].update(dict.fromkeys(there, zone))
        for fields in (conditions, endpoint):
            fields.skim()
    ports = _slice_ports(body)
    body.skim()
    # Each address is in one set only: the set of its best health.
    ready, draining = result[Health.READY], result[Health.DRAINING] - result[Health.READY]
    return EndpointSlice(
        service=service,
        namespace=manifest.namespace,
        name=manifest.key.name,
        addresses=tuple(sorted(ready)),
        ports=ports,
        draining=tuple(sorted(draining)),
        unready=tuple(sorted(result[Health.UNREADY] - ready - draining)),
        # A former Pod with the same address may still be listed: the zone of the healthiest entry counts.
        zones=tuple(sorted((zones[Health.UNREADY] | zones[Health.DRAINING] | zones[Health.READY]).items())),
    )


def _sliced_health(conditions: Fields) -> Health:
    """Return the health of an endpoint: ready by default; a terminating one may still be serving."""
    serves, is_ending = conditions.flag("serving"), conditions.flag("terminating")
    if conditions.flag("ready", default=True):
        return Health.READY
    return Health.DRAINING if serves and is_ending else Health.UNREADY


def endpoints(manifest: Manifest) -> EndpointSlice:
    """Return core Endpoints as one slice; all subsets must have the same ports."""
    subsets = manifest.body.sections("subsets")
    ports = [_slice_ports(subset) for subset in subsets]
    # An EndpointSlice has one list of ports for all its addresses.
    if len(set(ports)) > 1:
        expected = "must have the same ports in every subset; write one EndpointSlice for each subset instead"
        manifest.body.wrong("subsets", expected)
    addresses, unready = (_of_subsets(subsets, name) for name in ("addresses", "notReadyAddresses"))
    for fields in (manifest.body, *subsets):
        fields.skim()
    return EndpointSlice(
        service=manifest.key.name,
        namespace=manifest.namespace,
        name=manifest.key.name,
        addresses=tuple(sorted(addresses)),
        ports=ports[0] if ports else (),
        unready=tuple(sorted(unready - addresses)),
    )


def _of_subsets(subsets: Iterable[Fields], name: str) -> set[IpAddress]:
    return {
        ip_address
        for subset in subsets
        for entry in subset.sections(name)
        for ip_address in _addresses(entry, (entry.required_text("ip", ADDRESS_RULE, never),))
    }


def _addresses(fields: Fields, texts: tuple[str, ...]) -> tuple[IpAddress, ...]:
    addresses = []
    for text in texts:
        parsed = parse_address(text)
        if parsed is not None:
            addresses.append(parsed)
        elif text:
            fields.notes.refuse(Code.WRONG_VALUE, fields.path, ADDRESS_RULE, text)
    return tuple(addresses)


def _slice_ports(fields: Fields) -> tuple[tuple[str, int], ...]:
    result: set[tuple[str, int]] = set()
    for section in fields.sections("ports"):
        number: Port | None = section.port("port")
        if number is not None and is_tcp(section):
            result.add((section.text("name") or "", int(number)))
        section.skim("appProtocol")
    return tuple(sorted(result))
