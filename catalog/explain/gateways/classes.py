"""End of an explanation at a gateway that the mesh does not serve: missing, refused, or of another class."""

from catalog.explain.gateways.account import Account, EdgeExplanation
from catalog.explain.gateways.refusals import class_problems, gateway_problems, reasons
from catalog.oracle.decide import Answer
from catalog.relations.gateways.classes import reason_unserved
from catalog.store.gateway import gateway_classes, gateways


def unserved(account: Account) -> EdgeExplanation:
    """End an explanation with the reason why the mesh does not serve the gateway."""
    view, key = account.view, account.asked.gateway
    gateway, why = gateways(view).get(key), reason_unserved(view, key)
    problems = gateway_problems(account.refused, key)
    if problems:
        why = "exists, but is refused"
    elif gateway is not None and gateway.class_name not in gateway_classes(view):
        problems = class_problems(account.refused, gateway.class_name)
        if problems:
            why = f"is of GatewayClass {gateway.class_name}, which exists, but is refused"
    account.steps += reasons(problems)
    text = f"Gateway {key} {why}, so the mesh does not serve the gateway."
    return account.ended(Answer.UNREACHABLE, "unreachable", text)
