"""CAs declared by MeshRootCertificates: the mesh's CA is changed until it matches them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from catalog.relations.roots import MOST, wanted
from catalog.store.objects import origin_of
from catalog.store.osm import root_certificates
from catalog.store.view import View
from certs.errors import CertificateError
from certs.roots.authority import ChangingAuthority
from certs.roots.authority_store import AuthorityStore
from certs.roots.declared_roots import ChangeAction, DeclaredRoot, hold_reason, next_act, state_of
from certs.roots.rotation import Fingerprint, Rotation, aborted, turned
from certs.roots.secrets import DeclaredRootSecrets, Secrets
from meshwright.controller.roots.change import RootChange
from meshwright.mesh.kinds import MESH_ROOT_CERTIFICATE
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem, Problems, Severity, ordered

LOOK_SECONDS: Final = 2.0
NOT_TAKEN: Final = "root-not-taken"

_ERROR: Final = "error"


class DeclaredRule:
    """Rule by the MeshRootCertificates in the view, if there are any.

    `declared_secrets` is the result of the last look at their Secrets, `None` before the first.
    """

    def __init__(self, view: Callable[[], View | None]) -> None:
        self._view = view
        self.declared_secrets: DeclaredRootSecrets | None = None

    def refusal(self) -> str:
        """Return why commands must not change the CA: a MeshRootCertificate is in use. Empty without one."""
        view = self._view()
        if view is None or not (used := wanted(view)):
            return ""
        return (
            f"MeshRootCertificates determine the roots, such as {used[0].key}: change these objects instead"
        )

    def hold_reason(self, rotation: Rotation) -> str:
        """Return the reason why the next stage is not wanted yet; before the first look it is unknown."""
        if self.declared_secrets is None:
            return "the MeshRootCertificates have not been read yet"
        if self.declared_secrets.errors:
            return "a MeshRootCertificate has a problem"
        return hold_reason(rotation, self.declared_secrets.roots) if self.declared_secrets.is_ruled else ""


class DeclaredRoots:
    """Controller for changing the CA to the declared ones.

    `report` receives problems of objects, `state` the state of each object in OSM's words. `why_not` is the
    reason if the CA cannot be changed by this server. While an object is invalid nothing is changed, and the
    present CA stays in force.
    """

    def __init__(
        self,
        view: Callable[[], View | None],
        authority: ChangingAuthority | None,
        change: RootChange | None,
        rule: DeclaredRule,
        why_not: str,
        secrets: Secrets,
        report: Callable[[Problems], None],
        state: Callable[[Mapping[ObjectKey, str]], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._view, self._authority, self._change, self._rule = view, authority, change, rule
        self._why_not, self._secrets, self._show_problems, self._clock = why_not, secrets, report, clock
        self._state = state
        self.leading: AuthorityStore | None = None
        """The store of this server as the leader; None while another server leads."""

    async def run(self) -> None:
        """Compare the CA with the MeshRootCertificates every LOOK_SECONDS, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def run_among_others(self) -> None:
        """Compare likewise at one of several servers; only the leader takes steps and records roots."""
        while True:
            await self.look(self.leading, acts=self.leading is not None)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self, store: AuthorityStore | None = None, *, acts: bool = True) -> None:
        """Take the next step of a rotation towards the declared CAs, if any, and report errors.

        `store` is that of a leader. Without `acts` only errors and states are reported.
        """
        if (view := self._view()) is None:
            return
        used = wanted(view)[:MOST]
        errors: dict[PolicyKey, str] = {}
        if self._change is None or self._authority is None:
            errors = {root.key: self._why_not for root in used}
        else:
            try:
                errors.update(await self._follow(self._authority, self._change, used, store, acts=acts))
            except CertificateError as error:
                errors = {root.key: str(error) for root in used}
        self._report(view, errors)

    async def _follow(
        self,
        authority: ChangingAuthority,
        change: RootChange,
        used: Sequence[MeshRootCertificate],
        store: AuthorityStore | None,
        *,
        acts: bool,
    ) -> Mapping[PolicyKey, str]:
        """Take the next step towards the declared CAs; return the errors by object."""
        rotation, signer = authority.rotation, Fingerprint(authority.fingerprint)
        other = Fingerprint(authority.other)
        known = self._secrets if store is None else self._secrets.through(store)
        look = partial(known.declared_roots, used, signer, other, self._clock(), records=acts)
        secrets = await asyncio.to_thread(look)
        # Set even if nothing is done below, because `RootChange.stepping` asks the rule.
        self._rule.declared_secrets = secrets
        if secrets.errors or not secrets.is_ruled or not acts:
            return secrets.errors
        match next_act(rotation, signer, secrets.roots):
            case ChangeAction.ABORT:
                await change.take(aborted, store)
            case ChangeAction.TURN:
                await change.take(turned, store)
            case DeclaredRoot(name=name):
                await change.begin_by(partial(authority.begin, root=secrets.read.get(name), store=store))
                await asyncio.to_thread(known.note, name, Fingerprint(authority.other))
            case None:
                pass
        return {}

    def _report(self, view: View, errors: Mapping[PolicyKey, str]) -> None:
        """Report the problems and the status of each MeshRootCertificate."""
        self._show_problems(ordered(_problem(view, key, error) for key, error in errors.items()))
        authority, secrets = self._authority, self._rule.declared_secrets
        by_name = {} if secrets is None else {certificate.name: certificate for certificate in secrets.roots}
        states: dict[ObjectKey, str] = {}
        for root_certificate in root_certificates(view).values():
            root = by_name.get(str(root_certificate.secret))
            if root_certificate.key in errors:
                state = _ERROR
            elif authority is None or root is None or root_certificate.role is Role.INACTIVE:
                state = Role.INACTIVE.value
            else:
                state = state_of(root.fingerprint, authority.rotation, Fingerprint(authority.fingerprint))
            states[ObjectKey.from_name(MESH_ROOT_CERTIFICATE, root_certificate.key)] = state
        self._state(states)


def _problem(view: View, key: PolicyKey, message: str) -> Problem:
    about = ObjectKey.from_name(MESH_ROOT_CERTIFICATE, key)
    return Problem(
        code=NOT_TAKEN,
        severity=Severity.ERROR,
        origin=origin_of(view, about),
        key=about,
        field="spec.provider.tresor.ca.secretRef",
        expected=message,
    )
