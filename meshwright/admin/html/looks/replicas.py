"""Layout of the page Replicas: the servers of the mesh."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html.fields import field_text, records, words
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import Markup, name, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted
from meshwright.admin.html.values import NONE, moment
from meshwright.admin.jsonable import Document

_TONES: Final = {"ready": Tone.GOOD, "unknown": Tone.BAD}


def of_members(result: Document) -> Verdict:
    """Return the verdict on the servers: whether all are ready and answer, with equal inputs and settings."""
    members = records(result, "replicas")
    text = f"{counted(len(members), 'server')}; "
    if missing := records(result, "partial"):
        return Verdict(Tone.BAD, f"{text}{counted(len(missing), 'server')} without an answer.")
    if differing := [
        field_text(member, "replica") for member in members if words(member, "differing_settings")
    ]:
        return Verdict(Tone.WARNING, f"{text}other settings at {', '.join(differing)}.")
    if len({field_text(member, "inputs") for member in members}) > 1:
        return Verdict(Tone.WARNING, f"{text}not all have read the same objects.")
    waiting = [member for member in members if field_text(member, "state") != "ready"]
    if waiting:
        return Verdict(Tone.WARNING, f"{text}{len(waiting)} not ready.")
    return Verdict(Tone.GOOD, f"{text}all are ready and answer.")


def _state(member: Document) -> Markup:
    state = field_text(member, "state")
    return badge(state, _TONES.get(state, Tone.WARNING))


def _since(member: Document) -> Markup:
    return moment(field_text(member, "since")) if field_text(member, "since") else NONE


def _share(member: Document) -> Markup:
    share = member.get("fair_share")
    return text(f"{member.get('proxies')}" + ("" if share is None else f" (fair share {share})"))


def _age(member: Document) -> Markup:
    age = member.get("store_age_seconds")
    return NONE if age is None else text(f"{age} s ago")


_COLUMNS: Final = (
    Column("Replica", lambda member: name(field_text(member, "replica")), ("replica", "address")),
    Column("State", _state, ("state",)),
    Column("Leads", lambda member: text("leads") if member.get("leads") is True else NONE, ("leads",)),
    Column("Version", lambda member: text(field_text(member, "version")), ("version",)),
    Column("Since", _since, ("since",)),
    Column("Proxies", _share, ("proxies", "fair_share")),
    Column("Store answered", _age, ("store_age_seconds",)),
    Column("Inputs", lambda member: name(field_text(member, "inputs")[:16]), ("inputs",)),
    Column(
        "Other settings",
        lambda member: text(", ".join(words(member, "differing_settings")) or "none"),
        ("differing_settings",),
    ),
)


def _all(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    yield table(records(result, "replicas"), _COLUMNS, "No server is known.")


MEMBERS: Final = PageLook("Replicas", of_members, _all, (), "The servers of this mesh, and who leads them.")
