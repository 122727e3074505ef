"""Judgements of the servers of one mesh: the shared store, the servers themselves, and their inputs."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from meshwright.agent.reach.times import length
from meshwright.cli.checking.judgements.check import Check, counted, listed

LATE: Final = timedelta(seconds=15)
"""Longest time without an answer of the store that is no fault: each server asks every 5 s."""
DIFFERING: Final = timedelta(seconds=30)
"""Longest time for which inputs may differ: the sources of two servers are not read in the same moment."""


@dataclass(frozen=True, slots=True)
class Member:
    """One server. `store_age` is the time since the last answer of the store, None if unknown.

    `differing` are the settings with another value than at the server that was asked.
    """

    name: str
    version: str = ""
    state: str = "ready"
    store_age: timedelta | None = None
    inputs: str = ""
    differing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replicas:
    """The servers of a mesh, and those without an answer, each with the reason.

    `inputs_differ` is the time for which the inputs have differed, None if they are equal.
    """

    own: str
    leader: str
    members: tuple[Member, ...]
    silent: tuple[tuple[str, str], ...] = ()
    inputs_differ: timedelta | None = None


def store(replicas: Replicas) -> Check:
    """Judge whether the shared store answers all servers."""
    do = "check the store and the way to it; connected and known proxies are served meanwhile"
    ages = {member.name: member.store_age for member in replicas.members}
    late = [f"{name} for {length(age)}" for name, age in ages.items() if age is not None and age > LATE]
    if late:
        return Check.failed("store", f"the shared store has not answered {listed(late)}", do)
    if ages.get(replicas.own) is None:
        return Check.failed("store", "the shared store has not answered this server yet", do)
    known = [age for age in ages.values() if age is not None]
    return Check.ok(
        "store",
        f"answered {counted(len(known), 'server')}, the last answer at most {length(max(known))} ago",
    )


def replicas(replicas: Replicas) -> Check:
    """Judge whether all servers answer, are ready, and have one version and equal settings."""
    members = replicas.members
    text = counted(len(members), "server")
    if replicas.silent:
        who = listed(f"{name} ({reason})" for name, reason in replicas.silent)
        do = "see the log of this server, and check that the others reach its peer_address"
        return Check.failed("replicas", f"{text}, without an answer: {who}", do)
    if differing := [member for member in members if member.differing]:
        who = listed(f"{member.name} ({listed(member.differing)})" for member in differing)
        do = "give all servers the same settings, except addresses and paths"
        return Check.failed("replicas", f"{text}, with other settings than {replicas.own}: {who}", do)
    if waiting := [f"{member.name} ({member.state})" for member in members if member.state != "ready"]:
        do = "wait if they are starting or stopping; otherwise see their logs"
        return Check.warning("replicas", f"{text}, not ready: {listed(waiting)}", do)
    versions = sorted({member.version for member in members})
    if len(versions) > 1:
        do = "complete the upgrade"
        return Check.warning("replicas", f"{text} of the versions {listed(versions)}", do)
    if not replicas.leader:
        do = "wait for 20 seconds; if no server leads then, check the store"
        return Check.warning("replicas", f"{text}, and none leads", do)
    return Check.ok("replicas", f"{text} of version {versions[0]}; {replicas.leader} leads")


def inputs(replicas: Replicas) -> Check:
    """Judge whether all servers have read the same objects."""
    digests = Counter(member.inputs for member in replicas.members if member.inputs)
    if not digests:
        return Check.warning("inputs", "no server has read its sources yet", "wait until they are ready")
    if replicas.inputs_differ is None or len(digests) < 2:
        return Check.ok("inputs", f"{counted(sum(digests.values()), 'server')} with the same objects")
    most = max(digests, key=lambda digest: (digests[digest], digest))
    others = [member.name for member in replicas.members if member.inputs not in ("", most)]
    text = f"other objects at {listed(others)} for {length(replicas.inputs_differ)}"
    if replicas.inputs_differ <= DIFFERING:
        return Check.ok("inputs", f"{text}, which is normal during a change")
    do = "see `meshwright sources --replica NAME` for the sources of this server"
    return Check.failed("inputs", text, do)
