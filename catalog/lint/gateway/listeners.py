"""Problems of the listeners of a Gateway or ListenerSet."""

from collections.abc import Iterable, Iterator

from catalog.lint.codes import Code
from catalog.lint.gateway import certificates
from catalog.lint.lint import Lint
from catalog.lint.wording import Place, listed
from catalog.relations.gateways.verdicts import ListenerVerdict
from meshwright.mesh.problems.problem import Problem


def problems(lint: Lint, place: Place, verdicts: Iterable[ListenerVerdict]) -> Iterator[Problem]:
    """Yield the problems of all listeners of an object, in the order of its `spec.listeners`."""
    for index, verdict in enumerate(verdicts):
        listener, field = verdict.listener, f"spec.listeners[{index}]"
        if not verdict.accepted:
            wanted = (
                f"The listener is not in force ({verdict.reason}): {verdict.message}. Routes get no "
                "requests from the listener. Change or delete the listener."
            )
            yield place.error(Code.LISTENER_NOT_ACCEPTED, field, listener.name, wanted)
        for broken in verdict.broken:
            near, grant = certificates.hints(lint.view, place.key, broken)
            wanted = (
                f"A certificate cannot be shown ({broken.reason}): {broken.message}{near}. {grant}Correct "
                "the reference, the Secret or the ReferenceGrant."
            )
            yield place.error(Code.NO_CERTIFICATE, f"{field}.tls.certificateRefs", "", wanted)
        yield from certificates.problems(lint, place, f"{field}.tls.certificateRefs", verdict)
        if verdict.unknown_kinds:
            unfit = listed([kind.full for kind in verdict.unknown_kinds])
            fitting = listed([kind.name for kind in verdict.kinds]) or "none of them"
            wanted = (
                f"Routes of these kinds cannot attach to a listener of protocol {listener.protocol}; of the "
                f"allowed kinds {fitting} can. Correct the kinds, or the protocol."
            )
            yield place.error(Code.UNFIT_ROUTE_KINDS, f"{field}.allowedRoutes.kinds", unfit, wanted)
