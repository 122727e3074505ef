"""Gateway v1 and v1beta1, and ListenerSet v1."""

import re
from collections.abc import Iterator
from typing import Final

from meshwright.mesh.gateway.gateways import (
    HOSTNAME_ADDRESS,
    IP_ADDRESS,
    AllowedSets,
    Gateway,
    GatewayAddress,
    Infrastructure,
    ListenerSet,
    RoutesFrom,
)
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.gateway.forms import (
    ADDRESS_TYPE,
    ADDRESS_VALUE,
    ANNOTATION_VALUE,
    HOSTNAME,
    LABEL_KEY,
    LABEL_VALUE,
    NAME,
    generation_of,
    is_ip_address,
    limited,
    limited_pairs,
    optional,
    required,
)
from meshwright.specs.gateway.gateway_tls import gateway_tls
from meshwright.specs.gateway.listeners import listeners_of
from meshwright.specs.gateway.references import local_reference, object_reference
from meshwright.specs.gateway.selectors import namespaces
from meshwright.specs.gateway.tolerance import close, is_of_cluster, unreported
from meshwright.specs.manifest import Manifest

_ZEROS: Final = re.compile(r"\b0+(?=[0-9])")
_MOST_ADDRESSES: Final = 16
_MOST_LABELS: Final = 8
_MOST_ANNOTATIONS: Final = 16


def gateway(manifest: Manifest) -> Gateway:
    """Read a Gateway.

    An error refuses a manifest from a file. From a cluster every Gateway is read: a listener with an error is
    dropped, and no problem is reported, because the class can be another controller's. Fields without effect
    are a problem of the gateways of our classes alone, so they are noted in the value.
    """
    spec = unreported(manifest.spec())
    class_name, listeners = required(spec, "gatewayClassName", NAME), listeners_of(spec)
    addresses, infrastructure = _addresses(spec), _infrastructure(spec.section("infrastructure"))
    allowed = spec.section("allowedListeners")
    sets = AllowedSets(*namespaces(allowed.section("namespaces"), tuple(RoutesFrom), RoutesFrom.NONE))
    allowed.close()
    tls = gateway_tls(spec.section("tls"))
    spec.accept("defaultScope")
    unknown = close(spec)
    # The fields of a refused manifest are not read again, because each error would be reported twice.
    is_read = is_of_cluster(spec) or not spec.notes.refused
    return Gateway(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        class_name=class_name,
        listeners=listeners,
        addresses=addresses,
        infrastructure=infrastructure,
        generation=generation_of(manifest.metadata),
        created=manifest.metadata.text("creationTimestamp") or "",
        uid=manifest.metadata.text("uid") or "",
        unused=(*_unused(spec), *unknown) if is_read else (),
        allowed_sets=sets,
        tls=tls,
    )


def listener_set(manifest: Manifest) -> ListenerSet:
    """Read a ListenerSet; as with a Gateway, each of a cluster is read, and a bad listener is dropped."""
    spec = unreported(manifest.spec())
    parent, listeners = object_reference(spec.section("parentRef"), GATEWAY), listeners_of(spec)
    unknown = close(spec)
    is_read = is_of_cluster(spec) or not spec.notes.refused
    return ListenerSet(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        parent=parent,
        listeners=listeners,
        generation=generation_of(manifest.metadata),
        created=manifest.metadata.text("creationTimestamp") or "",
        unused=(*_options(spec), *unknown) if is_read else (),
    )


def _addresses(spec: Fields) -> tuple[GatewayAddress, ...]:
    sections = limited(spec, "addresses", _MOST_ADDRESSES)
    addresses = tuple(map(_address, sections))
    named = [
        (section, address)
        for section, address in zip(sections, addresses, strict=True)
        if section.has("value") and address.type in (IP_ADDRESS, HOSTNAME_ADDRESS)
    ]
    for index in duplicates([address for _, address in named]):
        section, address = named[index]
        rule = f"must differ from the {address.type}es before"
        spec.notes.refuse(Code.DUPLICATE, section.at("value"), rule, address.value)
    return addresses


def _address(fields: Fields) -> GatewayAddress:
    form = optional(fields, "type", ADDRESS_TYPE) or IP_ADDRESS
    value = optional(fields, "value", ADDRESS_VALUE)
    if value is not None and form == IP_ADDRESS and not _is_address(value):
        fields.wrong("value", "must be an IP address")
    if value is not None and form == HOSTNAME_ADDRESS and not HOSTNAME.fits(value):
        fields.wrong("value", HOSTNAME.rule)
    fields.accept("routability")
    fields.close()
    return GatewayAddress(form, value or "")


def _is_address(text: str) -> bool:
    """Return whether the API server accepts an IP address; an IPv4 number may begin with zeros."""
    before, colon, numbers = text.rpartition(":")
    return is_ip_address(before + colon + _ZEROS.sub("", numbers) if "." in numbers else text)


def _infrastructure(fields: Fields) -> Infrastructure:
    parameters = fields.section("parametersRef")
    result = Infrastructure(
        limited_pairs(fields, "labels", _MOST_LABELS, LABEL_VALUE, LABEL_KEY),
        limited_pairs(fields, "annotations", _MOST_ANNOTATIONS, ANNOTATION_VALUE, LABEL_KEY),
        local_reference(parameters) if fields.has("parametersRef") else None,
    )
    fields.close()
    return result


def _unused(spec: Fields) -> Iterator[str]:
    """Yield the paths of fields without effect."""
    places = (
        (spec, "defaultScope"),
        *((section, "routability") for section in spec.sections("addresses")),
    )
    for fields, name in places:
        if fields.has(name):
            yield fields.at(name)
    yield from _options(spec)


def _options(spec: Fields) -> Iterator[str]:
    """Yield the paths of the options of TLS, which are other controllers'."""
    for section in spec.sections("listeners"):
        if (tls := section.section("tls")).has("options"):
            yield tls.at("options")
