"""Acts of this server at the others; implements `meshwright.admin.http.commands.OtherServers`."""

import json
from dataclasses import dataclass

from meshwright.admin.http.commands import CommandError, OfferedResources, RevocationOutcome
from meshwright.admin.proxy_names import find
from meshwright.admin.replicas.peers import RETRY, REVOCATIONS, PeerAnswer
from meshwright.admin.replicas.views import ReplicaViews
from meshwright.controller.sharing.peers.client import PeerClient


@dataclass(frozen=True, slots=True)
class PeerActs:
    """The acts that one server asks of the others."""

    client: PeerClient
    views: ReplicaViews

    async def revoked(self, serial: str, why: str) -> RevocationOutcome:
        """Bring a revocation in force at all other servers; this server counts in the outcome."""
        answers = await self.client.act(REVOCATIONS, {"serial": serial, "reason": why})
        done = sum(_fields(answer).get("in_force") is True for answer in answers.answers.values())
        return RevocationOutcome(done + 1, len(answers.answers) + len(answers.silent) + 1, answers.silent)

    async def offered(self, wanted: str) -> OfferedResources | None:
        """Have the server of a proxy offer the rejected resources again; None if that is this server."""
        reading, _ = await self.views.over_all()
        name = find(reading, wanted).name
        replica = reading.replica_of(name)
        if replica is None or not reading.is_of_another(name):
            return None
        answers = await self.client.act(RETRY, {"proxy": str(name)}, replica)
        if (answer := answers.answers.get(replica)) is None or not answer.is_fine:
            why = answers.silent.get(replica, "the act failed there")
            raise CommandError(f"proxy {name} is connected to server {replica}, which did not answer: {why}")
        resources = _fields(answer).get("offered")
        return OfferedResources(name, tuple(map(str, resources)) if isinstance(resources, list) else ())


def _fields(answer: PeerAnswer) -> dict[str, object]:
    try:
        fields = json.loads(answer.content)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
