"""Problems of the client certificate that a Gateway shows to backends with TLS."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.gateway import certificates
from catalog.lint.lint import Lint
from catalog.lint.wording import Place
from catalog.relations.backend_tls.states import policy_state
from catalog.relations.gateways.client_certificates import client_certificate
from catalog.relations.gateways.verdicts import BrokenCertificate
from catalog.store.gateway import backend_tls_policies
from catalog.store.view import View
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem

_FIELD: Final = "spec.tls.backend.clientCertificateRef"


def problems(lint: Lint, place: Place, key: PolicyKey) -> Iterator[Problem]:
    """Yield the problems of the client certificate of a Gateway that is served here."""
    found = client_certificate(lint.view, key)
    if isinstance(found, PolicyKey):
        yield from certificates.out_of_time(lint, place, _FIELD, found, "backends")
        if not _is_used(lint.view, key):
            wanted = (
                "Backends do not get this certificate, because a BackendTLSPolicy for a backend of the "
                "gateway's routes is missing. Create a BackendTLSPolicy for the Service, or delete the "
                "reference."
            )
            yield place.warning(Code.TLS_WITHOUT_EFFECT, _FIELD, str(found), wanted)
    elif isinstance(found, BrokenCertificate):
        near, grant = certificates.hints(lint.view, place.key, found)
        wanted = (
            f"The client certificate cannot be shown to backends ({found.reason}): {found.message}{near}. "
            f"{grant}Correct the reference, the Secret or the ReferenceGrant."
        )
        yield place.error(Code.NO_CERTIFICATE, _FIELD, "", wanted)


def _is_used(view: View, key: PolicyKey) -> bool:
    """Return whether a BackendTLSPolicy is for a backend of a gateway."""
    # Policies are few, and each knows its gateways.
    states = (policy_state(view, policy) for policy in backend_tls_policies(view))
    return any(state is not None and key in state.gateways for state in states)
