"""Problems of the validation of a Gateway's clients: CA certificates, ports without TLS, and the mode."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.gateway.grants import near_grant
from catalog.lint.wording import Place, meant
from catalog.relations.gateways.ca_certificates import BrokenCa, CaReason
from catalog.relations.gateways.client_validation import REASONS, authorities_of
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.store.gateway import ca_bundles
from meshwright.mesh.gateway.gateways import ClientValidation, Gateway, ValidationMode
from meshwright.mesh.kinds import CONFIG_MAP
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem

_FRONTEND: Final = "spec.tls.frontend"
_DELETE: Final = "Delete the validation, or correct the port."


def problems(place: Place, gateway: Gateway) -> Iterator[Problem]:
    """Yield the problems of the validations of a Gateway that is served here."""
    frontend = gateway.tls.frontend
    written = [
        (f"{_FRONTEND}.default", frontend.default),
        *((f"{_FRONTEND}.perPort[{index}].tls", found) for index, (_, found) in enumerate(frontend.by_port)),
    ]
    for path, validation in written:
        if validation is not None:
            yield from _of_validation(place, gateway, f"{path}.validation", validation)
    yield from _without_effect(place, gateway)


def _of_validation(
    place: Place, gateway: Gateway, path: str, validation: ClientValidation
) -> Iterator[Problem]:
    for broken in authorities_of(place.view, gateway.key.namespace, validation).broken:
        near, grant = _hints(place, broken)
        wanted = (
            f"CA certificates for clients cannot be used ({REASONS[broken.reason]}): {broken.message}{near}. "
            f"{grant}Correct the reference, the ConfigMap or the ReferenceGrant."
        )
        yield place.error(Code.NO_CERTIFICATE, f"{path}.caCertificateRefs", "", wanted)
    if validation.mode is ValidationMode.INSECURE_FALLBACK:
        wanted = (
            "Every client is admitted, with any certificate or without one. The mode for other uses than "
            f"tests is {ValidationMode.VALID_ONLY}."
        )
        yield place.warning(Code.INSECURE_CLIENTS, f"{path}.mode", validation.mode, wanted)


def _hints(place: Place, broken: BrokenCa) -> tuple[str, str]:
    """Return a clause with a similar ConfigMap, and a sentence about a ReferenceGrant that nearly fits."""
    key, owner = broken.config_map, place.key
    if key is None:
        return "", ""
    if broken.reason is CaReason.NOT_PERMITTED:
        target = ObjectKey.from_name(CONFIG_MAP, key)
        return "", near_grant(place.view, owner.kind, owner.namespace, target)
    there = [bundle.name for bundle in ca_bundles(place.view) if bundle.namespace == owner.namespace]
    return meant([key.name], there) if key.namespace == owner.namespace else "", ""


def _without_effect(place: Place, gateway: Gateway) -> Iterator[Problem]:
    """Yield the validations at ports whose listeners end no TLS, and those that repeat the default."""
    frontend = gateway.tls.frontend
    # Listeners out of force count too, because their own problem says what to correct.
    ending = _ports_with_tls(place, gateway)
    own = {port for port, _ in frontend.by_port}
    if frontend.default is not None and not ending - own:
        where = "each port with TLS has its own" if ending else "the listeners do not end TLS"
        wanted = f"The validation is without clients, because {where}. {_DELETE}"
        path = f"{_FRONTEND}.default.validation"
        yield place.warning(Code.TLS_WITHOUT_EFFECT, path, "", wanted)
    for index, (port, validation) in enumerate(frontend.by_port):
        path = f"{_FRONTEND}.perPort[{index}].port"
        if port not in ending:
            wanted = (
                f"The entry is without clients, because listeners at port {port} do not end TLS. {_DELETE}"
            )
            yield place.warning(Code.TLS_WITHOUT_EFFECT, path, str(port), wanted)
        elif validation == frontend.default:
            wanted = "The entry repeats the default, so it changes nothing. Delete the entry."
            yield place.warning(Code.TLS_WITHOUT_EFFECT, path, str(port), wanted)


def _ports_with_tls(place: Place, gateway: Gateway) -> set[Port]:
    """Return the ports at which listeners of a Gateway or of its ListenerSets end TLS."""
    verdicts = listener_verdicts(place.view, gateway.key)
    return {item.listener.port for item in verdicts if item.listener.ends_tls}
