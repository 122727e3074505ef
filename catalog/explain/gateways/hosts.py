"""Ends of explanations at a port without a listener for a request, with all listeners and their states.

For example, a proxy closes a connection in the TLS handshake if no listener has the server name.
"""

from collections.abc import Iterator

from catalog.explain.gateways.account import (
    CLOSED_IN_HANDSHAKE,
    IN_HANDSHAKE,
    Account,
    EdgeExplanation,
    owner_of,
)
from catalog.explain.steps.step import Step, origin_of_object
from catalog.oracle.decide import Answer
from catalog.oracle.edge import has_server_name, listeners_at, owner_of_host
from catalog.relations.gateways.listeners import listener_verdicts
from catalog.relations.gateways.set_states import SetReason, set_state
from catalog.relations.gateways.verdicts import ListenerVerdict
from catalog.store.gateway import sets_by_gateway
from meshwright.mesh.kinds import LISTENER_SET
from meshwright.mesh.objects import ObjectKey


def without_port(account: Account) -> EdgeExplanation:
    """End an explanation at a port without a listener in force."""
    view, asked = account.view, account.asked
    account.steps += _listeners(account)
    declared = sorted({verdict.listener.port for verdict in listener_verdicts(view, asked.gateway)})
    if asked.port in declared:
        text = f"No listener of the gateway is in force at port {asked.port}, so connections are refused."
    else:
        *before, last = map(str, declared)
        ports = f"ports {', '.join(before)} and {last}" if before else f"port {last}"
        text = f"The gateway has no listener at port {asked.port}, so connections are refused: "
        text += f"its listeners have {ports}."
    return account.ended(Answer.UNREACHABLE, "unreachable", text)


def _listeners(account: Account) -> Iterator[Step]:
    """Yield a step for each listener of the gateway, and for each ListenerSet that it does not allow."""
    gateway = account.asked.gateway
    for verdict in listener_verdicts(account.view, gateway):
        listener, (owner, whose) = verdict.listener, owner_of(gateway, verdict)
        text = (
            f"Listener {listener.name}{whose} has port {listener.port} for {listener.hostname or 'all hosts'}"
        )
        state = "" if verdict.accepted else f", and is not in force ({verdict.reason})"
        yield Step(f"{text}{state}: {verdict.message}.", origin_of_object(account.view, owner))
    for key in sorted(sets_by_gateway(account.view).get(gateway, ())):
        found = set_state(account.view, key)
        if found is not None and found.reason is SetReason.NOT_ALLOWED:
            named = ObjectKey.from_name(LISTENER_SET, key)
            text = f"{named} is not attached ({found.reason}): {found.message}."
            yield Step(text, origin_of_object(account.view, named))


def without_listener(account: Account) -> EdgeExplanation:
    """End an explanation at a port whose listeners are for other host names."""
    asked = account.asked
    account.steps += _listeners(account)
    there = listeners_at(account.view, asked.gateway, asked.port)
    if not any(has_server_name(found.listener) for found in there):
        text = f"The listeners at port {asked.port} are for other hosts than {asked.host or 'an empty one'}."
        return account.ended(Answer.REFUSED, "refused: 404", f"{text} The gateway answers 404.")
    name, them = f"the server name {asked.name_in_tls}", "it"
    if not asked.name_in_tls:
        name, them = "connections without a server name", "them"
    text = f"No listener at port {asked.port} is for {name}, so there is no certificate for {them}."
    return account.ended(Answer.REFUSED, IN_HANDSHAKE, f"{text} {CLOSED_IN_HANDSHAKE}")


def for_other_host(account: Account, answering: ListenerVerdict) -> EdgeExplanation | None:
    """End an explanation at a listener with HTTPS if the host of the request is not the listener's."""
    asked, listener = account.asked, answering.listener
    right = owner_of_host(account.view, asked)
    if right == answering:
        return None
    if right is None:
        text = f"Listener {listener.name} is for other hosts than {asked.host or 'an empty one'}."
        return account.ended(Answer.REFUSED, "refused: 404", f"{text} The gateway answers 404.")
    _, whose = owner_of(asked.gateway, right)
    text = (
        f"Listener {right.listener.name}{whose} at the same port is for host {asked.host}, but the server "
        f"name selects listener {listener.name}. The gateway answers 421, so that a client with HTTP/2 opens "
        "another connection."
    )
    return account.ended(Answer.REFUSED, "refused: 421", text)
