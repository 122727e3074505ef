"""Workloads selected by a MutualTLS or ExternalAuthorization, and names without a workload."""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.smi.reach import workloads_in
from catalog.lint.wording import Place, Suggestions, listed
from catalog.relations.backends.targets import served_by
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.mutual_tls import MutualTLS
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import Workload

Selecting = MutualTLS | ExternalAuthorization


@dataclass(frozen=True, slots=True)
class Subjects:
    """The workloads of a namespace, and the target ports of the workloads selected by a policy."""

    there: tuple[Workload, ...]
    serving: tuple[tuple[ServiceIdentity, Port, Protocol], ...]

    @classmethod
    def select(cls, lint: Lint, namespace: Namespace, selecting: Selecting) -> "Subjects":
        """Return the subjects of a policy; only workloads with a sidecar count in `serving`."""
        there = tuple(workloads_in(lint).lookup(namespace))
        accounts = frozenset(selecting.accounts)
        its = [item for item in there if not accounts or _account(item) in accounts]
        serving = (
            item for workload in its if workload.uuid is not None for item in _served(lint.view, workload)
        )
        return cls(there, tuple(serving))

    def unknown_accounts(self, place: Place, result: Selecting, code: Code) -> Iterator[Problem]:
        """Yield a problem for each ServiceAccount of a policy without a workload."""
        names = {_account(workload) for workload in self.there}
        meant = Suggestions(lambda: names)
        for index, name in enumerate(result.accounts):
            if name not in names:
                wanted = (
                    f"A workload of the namespace with this ServiceAccount does not "
                    f"exist{meant.hint(name)}, so this entry is not in force. "
                    "Create the workload, or correct the name."
                )
                yield place.warning(code, f"spec.serviceAccounts[{index}]", name, wanted)

    def unknown_ports(self, place: Place, result: Selecting, code: Code) -> Iterator[Problem]:
        """Yield a problem for each port of a policy that is no target port of the selected workloads.

        Without any target port there is no problem.
        """
        numbers = {number for _, number, _ in self.serving}
        has = [str(item) for item in sorted(numbers)]
        for port in result.ports:
            if numbers and port not in numbers:
                wanted = (
                    "This entry is not in force, because the selected workloads do not have this "
                    f"target port. Use one of their target ports: {listed(has)}."
                )
                yield place.warning(code, "spec.ports", str(port), wanted)


def are_alike(item: Selecting, result: Selecting) -> bool:
    """Return whether two policies are equally specific, and overlap in ServiceAccounts and ports."""
    accounts = set(item.accounts) & set(result.accounts) or not (item.accounts or result.accounts)
    return bool(accounts) and bool(set(item.ports) & set(result.ports) or not (item.ports or result.ports))


def _served(view: View, workload: Workload) -> Iterator[tuple[ServiceIdentity, Port, Protocol]]:
    for number, protocol, _ in served_by(view, workload):
        yield workload.identity, number, protocol


def _account(workload: Workload) -> str:
    return workload.identity.service_account
