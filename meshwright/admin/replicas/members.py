"""`/api/v1/replicas`: the servers of one mesh. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass

from meshwright.admin.jsonable import Document, Json
from meshwright.admin.replicas.documents import partial
from meshwright.admin.replicas.pulse import ServerFacts
from meshwright.replicas.state import ReplicaState


@dataclass(frozen=True, slots=True)
class Members:
    """The servers that are here, with what they announce and what they have answered.

    `states` is None for a server with an unreadable state. `silent` has the reason of each server without
    an answer. `differing` is the time in seconds for which the inputs of the servers have differed, None if
    they are equal.
    """

    own: str
    leader: str | None
    states: Mapping[str, ReplicaState | None]
    facts: Mapping[str, ServerFacts]
    silent: Mapping[str, str]
    differing: float | None = None


def members_document(members: Members) -> Document:
    """Return the servers by name, with the fair share of each ready one: the mean number of proxies."""
    ready = [state for state in members.states.values() if state is not None and _takes(state)]
    # Streams at stopping servers count, because their proxies move to the ready ones.
    total = sum(state.streams for state in members.states.values() if state is not None)
    share = total / len(ready) if ready else None
    return {
        "own": members.own,
        "leader": members.leader,
        "replicas": [_member(name, state, members, share) for name, state in sorted(members.states.items())],
        "inputs_differ_seconds": None if members.differing is None else round(members.differing, 1),
        "partial": partial(members.silent),
    }


def _takes(state: ReplicaState) -> bool:
    return state.is_ready and not state.is_stopping


def _member(name: str, state: ReplicaState | None, members: Members, share: float | None) -> Json:
    facts = members.facts.get(name, ServerFacts())
    known = ReplicaState() if state is None else state
    return {
        "replica": name,
        "version": known.version,
        "since": known.started_at or None,
        "address": known.peer_address or None,
        "state": _state(state),
        "leads": name == members.leader,
        "proxies": known.streams,
        "fair_share": round(share, 1) if share is not None and _takes(known) else None,
        "store_age_seconds": None if facts.store_seconds is None else round(facts.store_seconds, 1),
        "inputs": known.inputs or None,
        "differing_settings": list[Json](_differing(facts, members.facts.get(members.own))),
    }


def _state(state: ReplicaState | None) -> str:
    if state is None:
        return "unknown"
    if state.is_stopping:
        return "stopping"
    return "ready" if state.is_ready else "starting"


def _differing(facts: ServerFacts, own: ServerFacts | None) -> list[str]:
    """Return the settings of a server that differ from this server's; newer versions may have others."""
    if own is None or own.settings is None or facts.settings is None:
        return []
    both = own.settings.keys() & facts.settings.keys()
    return sorted(name for name in both if own.settings[name] != facts.settings[name])
