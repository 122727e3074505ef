"""Layout of the page Streams: open streams, and the pushes to one proxy."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, number, part, records, words
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import NOTHING, Markup, joined, listed, name, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, badges, counted, tone_of, worst
from meshwright.admin.html.values import NONE, moment
from meshwright.admin.jsonable import Document

PROXY: Final = Field("proxy", "Proxy: UUID, common name or workload", "shop/store-1", required=True)


def of_streams(result: Document) -> Verdict:
    """Return the verdict of the page Streams: the number of open streams, and the types not in sync."""
    streams = records(result, "streams")
    states = [field_text(item, "state") for stream in streams for item in _types(stream).values()]
    if not streams:
        return Verdict(Tone.PLAIN, "No stream is open.")
    many = counted(len(streams), "stream is open", "streams are open")
    apart = sorted({state for state in states if state != "synced"})
    if not apart:
        return Verdict(Tone.GOOD, f"{many}, and all resource types are synced.")
    said_of = ", ".join(f"{states.count(item)} {item}" for item in apart)
    return Verdict(worst(map(tone_of, apart)), f"{many}; resource types that are not synced: {said_of}.")


def _types(stream: Document) -> dict[str, Document]:
    types = part(stream, "types")
    return {item: part(types, item) for item in types}


def _streams(result: Document) -> Markup:
    empty = "No stream is open. A sidecar with a certificate of this mesh opens one."
    return table(records(result, "streams"), _STREAM, empty)


def _states(stream: Document) -> Markup:
    result = [(item, field_text(inner, "state")) for item, inner in _types(stream).items()]
    return badges(result) if result else NONE


_STREAM: Final = (
    Column("Stream", lambda item: text(field_text(item, "stream")), ("stream",)),
    Column("Proxy", lambda item: links.proxy(field_text(item, "proxy")), ("proxy",)),
    Column("Types", _states, ()),
    Column("Address", lambda item: text(field_text(item, "peer")), ("peer",)),
    Column("Protocol", lambda item: text(field_text(item, "protocol")), ("protocol",)),
    Column("Since", lambda item: moment(field_text(item, "since")), ("since",)),
)


def pushes(cn: str, result: list[Document]) -> Markup:
    """Return the HTML table of the last pushes to one proxy, in the given order."""
    columns = (
        Column("When", lambda item: moment(field_text(item, "at"), exact=True), ("at",)),
        Column("Type", lambda item: text(field_text(item, "type")), ("type",)),
        Column("Content", lambda item: _content(cn, item), ("added", "changed", "removed", "again", "bytes")),
        Column("Cause", _due, ("trigger",)),
        Column("Answer", _answer, ("answer", "error", "seconds")),
    )
    return table(result, columns, "No push yet: the first push follows the first subscription.")


def _content(cn: str, push: Document) -> Markup:
    word, again = field_text(push, "type"), int(number(push, "again"))
    added = [links.resource(cn, word, item) for item in words(push, "added")]
    changed = [_change(cn, word, record) for record in records(push, "changed")]
    removed = [name(item) for item in words(push, "removed")]
    lines = [
        joined((text(f"{verb} "), joined(names, ", ")))
        for verb, names in (("added", added), ("changed", changed), ("removed", removed))
        if names
    ]
    lines += [text(f"{again} unchanged")] if again else []
    return joined(tag("div", markup) for markup in (*lines, text(f"{field_text(push, 'bytes')} bytes")))


def _change(cn: str, word: str, changed: Document) -> Markup:
    named = field_text(changed, "name")
    versions = {item: field_text(changed, item) for item in ("from", "to")}
    how = links.href("/debug/xds/diff", {"proxy": cn, "type": word, "name": named} | versions)
    # Old versions are stored for a while only, and versions of secrets never.
    further = (
        joined((text(" ("), links.link("compare", how), text(")"))) if changed.get("comparable") else NOTHING
    )
    return joined((links.resource(cn, word, named), further))


def _due(push: Document) -> Markup:
    trigger = part(push, "trigger")
    waves = [
        tag("div", text(f"wave {field_text(wave, 'wave')}: "), _cause(cause))
        for wave in records(trigger, "waves")
        for cause in records(wave, "causes")
    ]
    more = sum(int(number(wave, "more")) for wave in records(trigger, "waves"))
    rest = tag("div", text(f"and {more} more")) if more else NOTHING
    return joined((tag("div", text(field_text(trigger, "why"))), *waves, rest))


def _cause(cause: Document) -> Markup:
    there = text(f" {field_text(cause, 'change')} ({field_text(cause, 'origin')})")
    return joined((links.mesh_object(field_text(cause, "object")), there))


def _answer(push: Document) -> Markup:
    error, seconds = part(push, "error"), push.get("seconds")
    took = text(f" {number(push, 'seconds') * 1000:.1f} ms") if seconds is not None else NOTHING
    said_so = tag("div", links.in_sentence(field_text(error, "message"))) if error else NOTHING
    return joined((badge(field_text(push, "answer")), took, said_so))


def _xds(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    if cn := field_text(result, "proxy"):
        yield tag("p", links.proxy(cn, "Description of this proxy"), class_="tabs")
    if "objects" in result:
        yield tag("h2", text(f"Input objects of {field_text(result, 'resource')}"))
        yield made_from(result)
        if result.get("comparable"):
            yield _compare(cn, field_text(result, "resource"))
    if cn:
        yield tag("h2", text("Streams"))
    yield _streams(result)
    if "pushes" in result:
        yield tag("h2", text("Pushes, newest first"))
        yield pushes(cn, records(result, "pushes"))


def _compare(cn: str, resource: str) -> Markup:
    word, _, named = resource.partition("/")
    to = links.href("/debug/xds/diff", {"proxy": cn, "type": word, "name": named})
    return tag("p", tag("a", text("Last change of this resource"), href=to))


def made_from(result: Document) -> Markup:
    """Return the HTML list of the input objects of a resource, with their origins."""
    objects = records(result, "objects")
    if not objects:
        return tag("p", text("None: the proxy has no such resource."), class_="empty")
    return listed(
        joined((links.mesh_object(field_text(item, "object")), text(f", {field_text(item, 'origin')}")))
        for item in objects
    )


STREAMS: Final = PageLook(
    "Streams",
    of_streams,
    _xds,
    (Form((PROXY, Field("resource", "Resource: type/name", "route/rds-inbound.8080")), "Show pushes"),),
    "Open streams by type; for one proxy also the last pushes, and the input objects of a resource.",
)
