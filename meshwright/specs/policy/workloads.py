"""Selection of workloads and ports by our policies, within the policy's namespace."""

from meshwright.mesh.names import Port, ServiceAccountName, is_dns_subdomain
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import NAME_RULE


def filled(fields: Fields, name: str, absent: str) -> None:
    """Refuse an empty list, because a reader could not know whether no entry or every entry is meant."""
    if fields.has(name) and fields.raw(name) == []:
        fields.wrong(name, f"must not be empty; {absent}", Code.EMPTY)


def subjects(fields: Fields) -> tuple[tuple[ServiceAccountName, ...], tuple[Port, ...]]:
    """Read `serviceAccounts` and `ports` of a policy, each sorted; empty if absent."""
    filled(fields, "serviceAccounts", "for all workloads of the namespace, leave the field out")
    filled(fields, "ports", "for all ports, leave the field out")
    return _accounts(fields), fields.ports("ports")


def _accounts(fields: Fields) -> tuple[ServiceAccountName, ...]:
    service_account_names = set()
    for index, name in enumerate(fields.texts("serviceAccounts", NAME_RULE, is_dns_subdomain)):
        if is_dns_subdomain(name):
            service_account_names.add(ServiceAccountName(name))
        else:
            path = f"{fields.at('serviceAccounts')}[{index}]"
            fields.notes.refuse(Code.WRONG_VALUE, path, NAME_RULE, name)
    return tuple(sorted(service_account_names))
