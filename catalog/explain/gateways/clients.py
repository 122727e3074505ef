"""Steps of explanations about the certificates of clients."""

from collections.abc import Iterator

from catalog.explain.gateways.account import Account
from catalog.explain.steps.step import Step, origin_of_object
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.gateways.verdicts import ListenerVerdict
from meshwright.mesh.gateway.gateways import ValidationMode
from meshwright.mesh.kinds import GATEWAY
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


def validation(account: Account, answering: ListenerVerdict) -> Iterator[Step]:
    """Yield a step about the certificate that a listener demands; the explanation assumes a valid one."""
    key = account.asked.gateway
    gateway = served_gateway(account.view, key)
    if answering.clients is None or gateway is None:
        return
    found = gateway.tls.frontend.at(answering.listener.port)
    authorities = () if found is None else found.authorities
    named = ", ".join(
        f"{item.kind.name} {PolicyKey(item.namespace or key.namespace, item.name)}" for item in authorities
    )
    if answering.clients.mode is ValidationMode.VALID_ONLY:
        text = (
            f"Clients need a certificate of an authority in {named}. The gateway closes connections without "
            "one in the TLS handshake."
        )
    else:
        text = (
            "Clients are asked for a certificate, and are admitted with any certificate and without one "
            f"({answering.clients.mode})."
        )
    yield Step(text, origin_of_object(account.view, ObjectKey.from_name(GATEWAY, key)), depth=1)
