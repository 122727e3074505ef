"""Certificate of the gateway in a MeshConfig: written to a Secret, renewed, and removed when unneeded."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog

from catalog.store.view import View
from certs.contract import Issuer
from certs.errors import CertificateError
from certs.gateway import gateway_pair, outdated
from certs.keys.pair import KeyPairOptions, Pair
from certs.renewal import renew_at
from meshwright.controller.gateway.not_written import PACE_SECONDS, unwritten
from meshwright.controller.gateway.secret import SecretContent, document
from meshwright.controller.state_files import Form, PersistentValue
from meshwright.kube.api import Api
from meshwright.kube.builtin import SECRETS
from meshwright.kube.errors import KubeError, Reason
from meshwright.kubernetes.admission.registration import LOOK_SECONDS, MANAGER, rest
from meshwright.mesh.config import GatewayCertificate
from meshwright.mesh.names import Namespace, SecretName
from meshwright.mesh.problems.problem import Problems

_HINT: Final = "the chart's value ingressGateway.secrets grants it"

_log = structlog.get_logger("controller.gateway")


class _Failure(Exception):
    """Reason why a Secret could not be brought into the wanted state, in one sentence."""


@dataclass(frozen=True, slots=True)
class _Goal:
    """Wanted state of a gateway's Secret: the certificate in the MeshConfig, and the CA certificates."""

    wanted: GatewayCertificate | None
    roots: bytes
    signing: bytes


class GatewaySecret:
    """Controller of the Secret that the MeshConfig names, for the control plane in the namespace `home`.

    `places` are the Secrets written so far, to be deleted when they are no longer named. A Secret of another
    owner is left alone. `report` receives problems, `issued` is called for each new certificate. For example,
    after a rename of the Secret in the MeshConfig the new one is written and the old one deleted.
    """

    def __init__(
        self,
        api: Api,
        home: str,
        issuer: Issuer,
        making: KeyPairOptions,
        view: Callable[[], View | None],
        places: PersistentValue[frozenset[SecretName]],
        issued: Callable[[], None],
        report: Callable[[Problems], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._api, self._home, self._issuer, self._making = api, home, issuer, making
        self._view, self._kept, self._issued, self._report, self._clock = view, places, issued, report, clock
        self._places = places.load()
        self._goal: _Goal | None = None
        self._pair: Pair | None = None
        self._again, self._failures = 0.0, 0

    @property
    def end(self) -> datetime | None:
        """Return the end of the gateway certificate's validity, or `None` without a certificate."""
        return None if self._pair is None else self._pair.leaf.not_after

    async def reload(self) -> None:
        """Read the names of the written Secrets again, because another server may have written some."""
        self._places, self._goal = await asyncio.to_thread(self._kept.load), None

    async def run(self) -> None:
        """Write, renew and delete the Secret as the MeshConfig requires, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(PACE_SECONDS)

    async def look(self) -> None:
        """Bring the Secret into the wanted state if the goal has changed, or a renewal or check is due."""
        if (view := self._view()) is None:
            return
        wanted = view.config.ingress_gateway
        goal = _Goal(wanted, self._issuer.trust_bundle(), self._issuer.signing_bundle())
        now = asyncio.get_running_loop().time()
        due = self._pair is not None and not self._failures and self._clock() >= renew_at(self._pair.leaf)
        if goal == self._goal and now < self._again and not due:
            return
        # A changed goal is tried at once, without the delay after earlier failures.
        self._failures = self._failures if goal == self._goal else 0
        self._goal = goal
        wrong = await self._round(goal)
        self._failures = self._failures + 1 if wrong else 0
        self._again = now + (min(rest(self._failures), LOOK_SECONDS) if wrong else LOOK_SECONDS)
        self._report(tuple(unwritten(view, text) for text in wrong))

    async def _round(self, goal: _Goal) -> tuple[str, ...]:
        """Write the wanted Secret, and delete earlier ones with another name; return the error texts."""
        place = None if goal.wanted is None else goal.wanted.secret
        # Each Secret by itself, so an error of one does not prevent the others.
        works = [self._cleared(secret_name) for secret_name in sorted(self._places) if secret_name != place]
        works += [self._written(goal.wanted, goal)] if goal.wanted else []
        self._pair = self._pair if goal.wanted else None
        wrong = list[str]()
        for work in works:
            try:
                await work
            except (KubeError, CertificateError, _Failure) as error:
                hint = isinstance(error, KubeError) and error.reason is Reason.FORBIDDEN
                wrong.append(f"{error}; {_HINT}" if hint else str(error))
        return tuple(wrong)

    async def _written(self, wanted: GatewayCertificate, goal: _Goal) -> None:
        place = wanted.secret
        held = await self._read_secret(place)
        # A Secret of another owner may contain a certificate in use, so it is never overwritten.
        if held is not None and held.home != self._home:
            whose = (
                f"belongs to the control plane in namespace {held.home}"
                if held.home
                else "was not created by this control plane"
            )
            raise _Failure(
                f"Secret {place} {whose}, so it is not overwritten; name another Secret in the "
                "MeshConfig, or delete this one"
            )
        why = self._outdated(held, wanted)
        if held is None or held.pair is None or why:
            pair = await asyncio.to_thread(
                gateway_pair, self._issuer, wanted.dns_names, wanted.validity, self._clock(), self._making
            )
            self._issued()
        # The certificate stays; only `ca.crt` is replaced.
        elif held.roots != goal.roots:
            pair, why = held.pair, "the CA roots changed"
        else:
            self._pair = held.pair
            return
        # Before the Secret is written: after a crash in between, an unneeded Secret is still deleted later.
        await self._note(self._places | {place})
        body = document(place.name, pair, goal.roots, wanted.validity, self._home)
        await self._api.apply(SECRETS, place.namespace, place.name, body, manager=MANAGER)
        self._pair = pair
        fields = {"secret": str(place), "serial": pair.leaf.serial, "until": pair.leaf.not_after.isoformat()}
        _log.info("gateway certificate written", **fields, reason=why or "the Secret lacked a certificate")

    def _outdated(self, content: SecretContent | None, wanted: GatewayCertificate) -> str:
        if content is None or content.pair is None:
            return ""
        if content.validity != wanted.validity:
            return "the configured validity changed"
        return outdated(content.pair, self._issuer, wanted.dns_names, self._clock())

    async def _cleared(self, place: SecretName) -> None:
        """Delete a Secret of this control plane after the MeshConfig has ceased to name the Secret."""
        held = await self._read_secret(place)
        if held is not None and held.home == self._home:
            await self._api.delete(SECRETS, place.namespace, place.name)
            _log.info("gateway certificate deleted", secret=str(place))
        await self._note(self._places - {place})

    async def _read_secret(self, place: SecretName) -> SecretContent | None:
        try:
            raw: Mapping[str, Any] = await self._api.get(SECRETS, place.namespace, place.name)
        except KubeError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
            return None
        return SecretContent.parse(raw)

    async def _note(self, places: frozenset[SecretName]) -> None:
        if places != self._places:
            self._places = places
            await asyncio.to_thread(self._kept.keep, places)


def _read(content: bytes) -> frozenset[SecretName]:
    result = json.loads(content)
    try:
        return frozenset(SecretName(Namespace(str(space)), str(name)) for space, name in result)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _as_json(places: frozenset[SecretName]) -> bytes:
    return json.dumps([[place.namespace, place.name] for place in sorted(places)]).encode()


GATEWAY_SECRETS: Final[Form[frozenset[SecretName]]] = Form(
    "gateway-secrets.json",
    frozenset(),
    _read,
    _as_json,
    "Secrets of former gateways are not deleted",
    "the list of gateway Secrets cannot be saved, so a restarted server would not delete Secrets "
    "of former gateways",
)
"""Names of the Secrets with gateway certificates from us; the file has, for example, `[["mesh",
"gateway"]]`."""
