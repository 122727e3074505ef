"""Our own kind `Workload`, apiVersion `meshwright.dev/v1alpha1`: a process on a machine without Kubernetes.

The meaning of its fields is in `meshwright.specs.reference.meanings.own_kinds` and, with examples, in
docs/policy/reference.md. A workload with `gateway` serves a gateway and intercepts nothing. Otherwise
interception is explicit if `applicationAddress` or `upstreams` is present, else transparent.
"""

from collections.abc import Mapping, Sequence

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import (
    IpAddress,
    Namespace,
    Port,
    ProxyUuid,
    ServiceAccountName,
    ServiceName,
    is_dns_label,
    is_dns_subdomain,
)
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.mesh.workload import (
    Capture,
    Edge,
    Explicit,
    Interception,
    Transparent,
    Upstream,
    Workload,
    WorkloadKey,
    WorkloadPort,
)
from meshwright.specs.annotations import egress_services
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.manifest import LABEL_RULE, NAME_RULE, Manifest, sidecar_driver
from meshwright.specs.values.references import (
    ADDRESS_RULE,
    address,
    addresses,
    namespace_name,
    object_name,
    service,
)

LOOPBACK = IpAddress("127.0.0.1")
MAX_WEIGHT = 1000


def workload(manifest: Manifest) -> Workload:
    """Read a Workload; its listeners must have different addresses or ports."""
    spec = manifest.spec()
    account = spec.text("serviceAccount", expected=NAME_RULE, fits=is_dns_subdomain) or "default"
    if not is_dns_subdomain(account):
        spec.wrong("serviceAccount", NAME_RULE)
    if not spec.has("address"):
        spec.required_text("address", ADDRESS_RULE)
    own = address(spec, "address") or IpAddress("")
    ports = _ports(spec)
    result = Workload(
        key=WorkloadKey(manifest.namespace, manifest.key.name),
        identity=ServiceIdentity(manifest.namespace, ServiceAccountName(account)),
        service=_service(spec, account),
        address=own,
        uuid=_uuid(spec),
        ports=tuple(sorted(ports)),
        labels=manifest.labels(),
        interception=_interception(spec, manifest.namespace, own, ports),
        locality=spec.text("locality") or "",
        weight=spec.whole("weight", 1, MAX_WEIGHT, default=1) or 1,
        driver=sidecar_driver(manifest),
        scope=egress_services(manifest.metadata.section("annotations")),
        other_addresses=_other_addresses(spec, own),
        created=manifest.metadata.text("creationTimestamp") or "",
    )
    spec.close()
    return result


def _other_addresses(spec: Fields, own: IpAddress) -> tuple[IpAddress, ...]:
    """Return further addresses, each once.

    They are refused with explicit interception, because the sidecar then listens only on `spec.address`.
    """
    result = addresses(spec, "otherAddresses", spec.texts("otherAddresses", ADDRESS_RULE))
    if result and (spec.has("applicationAddress") or spec.has("upstreams")):
        spec.wrong(
            "otherAddresses",
            "is only for transparent interception; remove otherAddresses, or remove "
            "upstreams and applicationAddress, which select explicit interception",
        )
    return tuple(dict.fromkeys(ip_address for ip_address in result if ip_address != own))


def _service(spec: Fields, account: str) -> ServiceName:
    name = spec.text("service", expected=LABEL_RULE, fits=is_dns_label) or account
    # An invalid ServiceAccount, from which the name would be taken, has an error already.
    if not is_dns_label(name) and (spec.has("service") or is_dns_subdomain(account)):
        spec.wrong(
            "service",
            f"{LABEL_RULE}, because the name becomes part of the common name of the proxy's certificate",
        )
    return ServiceName(name)


def _uuid(spec: Fields) -> ProxyUuid | None:
    value = spec.text("uuid", expected=LABEL_RULE, fits=is_dns_label)
    if value is not None and not is_dns_label(value):
        spec.wrong("uuid", f"{LABEL_RULE}, such as a UUID")
    return None if value is None else ProxyUuid(value)


def _ports(spec: Fields) -> tuple[WorkloadPort, ...]:
    sections = spec.sections("ports")
    ports = tuple(_port(section) for section in sections)
    for index in duplicates([port.number for port in ports]):
        sections[index].notes.refuse(
            Code.DUPLICATE,
            sections[index].path,
            "must differ from the other ports of this workload",
            ports[index].number,
        )
    return ports


def _port(fields: Fields) -> WorkloadPort:
    name, other = (
        ("number", "port") if fields.has("number") and not fields.has("port") else ("port", "number")
    )
    number = fields.required_port(name)
    if fields.has(other):
        fields.wrong(
            other,
            f"port and number are two names of the same field, and {name} is given as "
            "well; remove one of them",
            Code.UNKNOWN_FIELD,
        )
    # `close` must not report the second name again.
    fields.accept(other)
    protocol = "" if fields.raw("protocol") is None else fields.choice("protocol", tuple(Protocol), "")
    workload_port = WorkloadPort(number, fields.text("name") or "", Protocol(protocol) if protocol else None)
    fields.close()
    return workload_port


def _interception(
    spec: Fields, namespace: Namespace, own: IpAddress, ports: Sequence[WorkloadPort]
) -> Interception:
    application = address(spec, "applicationAddress")
    sections = spec.sections("upstreams")
    transparent = _transparent(spec.section("interception"))
    if spec.has("gateway"):
        return _edge(spec)
    if application is None and not sections:
        return transparent
    if spec.has("interception"):
        spec.wrong(
            "interception",
            "is only for transparent interception; remove it, or remove "
            "upstreams and applicationAddress, which select explicit interception",
        )
    if application == own:
        spec.wrong(
            "applicationAddress",
            "must differ from spec.address, because the sidecar listens on the same ports there",
            Code.LISTENER_CONFLICT,
        )
    upstreams = tuple(_upstream(section, namespace) for section in sections)
    if not spec.notes.refused:
        # Only for valid values, because the defaults of invalid ones could collide.
        _refuse_conflicts(sections, upstreams, own, application, ports)
    return Explicit(application, tuple(sorted(upstreams)))


def _edge(spec: Fields) -> Edge:
    """Return the gateway that the workload serves; it has no application, so nothing is intercepted."""
    for name in ("ports", "applicationAddress", "upstreams", "interception"):
        if spec.has(name):
            spec.wrong(name, "is not allowed beside gateway, because a gateway has no application; remove it")
    return Edge(object_name(spec, "gateway"))


def _transparent(fields: Fields) -> Transparent:
    capture = Capture(fields.choice("capture", tuple(Capture), Capture.REDIRECT))
    transparent = Transparent(capture, fields.flag("ipv6"))
    fields.close()
    return transparent


def _upstream(fields: Fields, namespace: Namespace) -> Upstream:
    called = _called(fields, namespace)
    port = fields.required_port("port")
    local = address(fields, "address", LOOPBACK) or LOOPBACK
    upstream = Upstream(called, port, local, fields.port("localPort") or port)
    fields.close()
    return upstream


def _called(fields: Fields, namespace: Namespace) -> ServiceKey:
    if not isinstance(fields.raw("service"), Mapping):
        return service(fields, "service", namespace)
    section = fields.section("service")
    name = object_name(section, "name")
    service_key = ServiceKey(namespace_name(section, "namespace", namespace), ServiceName(name))
    section.close()
    return service_key


def _refuse_conflicts(
    sections: Sequence[Fields],
    upstreams: Sequence[Upstream],
    own: IpAddress,
    application: IpAddress | None,
    ports: Sequence[WorkloadPort],
) -> None:
    """Refuse each upstream whose local address and port another listener has, naming both."""
    taken: dict[tuple[IpAddress, Port], str] = {}
    for index, port in enumerate(ports):
        taken[own, port.number] = f"the inbound listener of spec.ports[{index}]"
        if application is not None:
            taken[application, port.number] = f"the application's port spec.ports[{index}]"
    for section, upstream in zip(sections, upstreams, strict=True):
        place = (upstream.local_address, upstream.local_port)
        other = taken.setdefault(place, section.path)
        if other != section.path:
            section.notes.refuse(
                Code.LISTENER_CONFLICT,
                section.path,
                f"must have a unique address and port; {other} has the same",
                f"{place[0]} port {place[1]}",
            )
