"""Streams of proxies, what they were sent, and how a resource changed."""

from collections.abc import Iterable
from typing import Final

from admin.html import links
from admin.html.fields import number, part, records, said, words
from admin.html.forms import Field, Form
from admin.html.frame import Asked
from admin.html.looks.look import Look
from admin.html.markup import NOTHING, Markup, code, joined, listed, name, tag, text
from admin.html.tables import Column, table
from admin.html.tones import Tone, Verdict, badge, badges, counted, tone_of, worst
from admin.html.values import NONE, moment, pairs
from admin.pages.jsonable import Document

_PROXY: Final = Field("proxy", "Proxy: UUID, common name or workload", "shop/store-1", required=True)
TYPES: Final = ("cluster", "endpoint", "listener", "route")


def of_streams(found: Document) -> Verdict:
    """Return how many streams there are, and whether all that was sent is in force."""
    streams = records(found, "streams")
    states = [said(each, "state") for stream in streams for each in _types(stream).values()]
    if not streams:
        return Verdict(Tone.PLAIN, "No stream is open.")
    many = counted(len(streams), "stream is open", "streams are open")
    apart = sorted({each for each in states if each != "synced"})
    if not apart:
        return Verdict(Tone.GOOD, f"{many}, and all that was sent is acknowledged.")
    said_of = ", ".join(f"{states.count(each)} {each}" for each in apart)
    return Verdict(worst(map(tone_of, apart)), f"{many}; types that are not in step: {said_of}.")


def _types(stream: Document) -> dict[str, Document]:
    types = part(stream, "types")
    return {each: part(types, each) for each in types}


def _streams(found: Document) -> Markup:
    empty = "No stream is open. One is as soon as a sidecar connects with a certificate of this mesh."
    return table(records(found, "streams"), _STREAM, empty)


def _states(stream: Document) -> Markup:
    found = [(each, said(inner, "state")) for each, inner in _types(stream).items()]
    return badges(found) if found else NONE


_STREAM: Final = (
    Column("Stream", lambda each: text(said(each, "stream")), ("stream",)),
    Column("Proxy", lambda each: links.proxy(said(each, "proxy")), ("proxy",)),
    Column("Types", _states, ()),
    Column("From", lambda each: text(said(each, "peer")), ("peer",)),
    Column("Protocol", lambda each: text(said(each, "protocol")), ("protocol",)),
    Column("Since", lambda each: moment(said(each, "since")), ("since",)),
)


def pushes(cn: str, found: list[Document]) -> Markup:
    """Return one proxy's pushes, as they are given."""
    columns = (
        Column("When", lambda each: moment(said(each, "at"), exact=True), ("at",)),
        Column("Type", lambda each: text(said(each, "type")), ("type",)),
        Column("What", lambda each: _what(cn, each), ("added", "changed", "removed", "again", "bytes")),
        Column("Due to", _due, ("trigger",)),
        Column("Answer", _answer, ("answer", "error", "seconds")),
    )
    return table(found, columns, "Nothing was pushed yet: the first push follows the first subscription.")


def _what(cn: str, push: Document) -> Markup:
    word, again = said(push, "type"), int(number(push, "again"))
    added = [links.resource(cn, word, each) for each in words(push, "added")]
    changed = [_change(cn, word, each) for each in records(push, "changed")]
    removed = [name(each) for each in words(push, "removed")]
    lines = [
        joined((text(f"{verb} "), joined(names, ", ")))
        for verb, names in (("added", added), ("changed", changed), ("removed", removed))
        if names
    ]
    lines += [text(f"{again} as they were held")] if again else []
    return joined(tag("div", each) for each in (*lines, text(f"{said(push, 'bytes')} bytes")))


def _change(cn: str, word: str, changed: Document) -> Markup:
    named = said(changed, "name")
    versions = {each: said(changed, each) for each in ("from", "to")}
    how = links.href("/debug/xds/diff", {"proxy": cn, "type": word, "name": named} | versions)
    # A secret's content is never compared.
    further = NOTHING if word == "secret" else joined((text(" ("), links.link("how", how), text(")")))
    return joined((links.resource(cn, word, named), further))


def _due(push: Document) -> Markup:
    trigger = part(push, "trigger")
    waves = [
        tag("div", text(f"wave {said(wave, 'wave')}: "), _cause(cause))
        for wave in records(trigger, "waves")
        for cause in records(wave, "causes")
    ]
    more = sum(int(number(wave, "more")) for wave in records(trigger, "waves"))
    rest = tag("div", text(f"and {more} more")) if more else NOTHING
    return joined((tag("div", text(said(trigger, "why"))), *waves, rest))


def _cause(cause: Document) -> Markup:
    changed, (kind, _, named) = said(cause, "object"), said(cause, "object").partition(" ")
    match kind:
        case "rejection" | "admission" if named.count(".") == 2:
            what = joined((text(f"{kind} "), links.proxy(named)))
        case "certificate":
            what = joined((text(f"{kind} "), links.identity(named)))
        case _:
            what = links.in_sentence(changed)
    return joined((what, text(f" {said(cause, 'change')} ({said(cause, 'origin')})")))


def _answer(push: Document) -> Markup:
    error, seconds = part(push, "error"), push.get("seconds")
    took = text(f" {number(push, 'seconds') * 1000:.1f} ms") if seconds is not None else NOTHING
    said_so = tag("div", links.in_sentence(said(error, "message"))) if error else NOTHING
    return joined((badge(said(push, "answer")), took, said_so))


def _xds(found: Document, _asked: Asked) -> Iterable[Markup]:
    if cn := said(found, "proxy"):
        yield tag("p", links.proxy(cn, "What this proxy was told"), class_="tabs")
    if "objects" in found:
        yield tag("h2", text(f"What {said(found, 'resource')} is made from"))
        yield made_from(found)
        yield from _compare(cn, said(found, "resource"))
    if cn:
        yield tag("h2", text("Streams"))
    yield _streams(found)
    if "pushes" in found:
        yield tag("h2", text("Pushes, newest first"))
        yield pushes(cn, records(found, "pushes"))


def _compare(cn: str, resource: str) -> Iterable[Markup]:
    word, _, named = resource.partition("/")
    to = links.href("/debug/xds/diff", {"proxy": cn, "type": word, "name": named})
    yield tag("p", tag("a", text("What changed in it last"), href=to))


def made_from(found: Document) -> Markup:
    """Return the objects that a resource was made from, with where they stand."""
    objects = records(found, "objects")
    if not objects:
        return tag("p", text("Nothing: the proxy is served no such resource."), class_="empty")
    return listed(
        joined((links.mesh_object(said(each, "object")), text(f", {said(each, 'origin')}")))
        for each in objects
    )


def of_difference(found: Document) -> Verdict:
    """Return how much changed."""
    if "usage" in found:
        return Verdict(Tone.PLAIN, "Say which resource of which proxy.")
    lines = [each for each in words(found, "diff") if not each.startswith(("+++", "---"))]
    more, less = (sum(each.startswith(sign) for each in lines) for sign in "+-")
    named = f"{said(found, 'type')} {said(found, 'name')}"
    return Verdict(Tone.PLAIN, f"{named}: {counted(more, 'line')} more, {less} less.")


def _difference(found: Document, _asked: Asked) -> Iterable[Markup]:
    if "usage" in found:
        return
    versions = {each: code(said(found, each)) for each in ("from", "to")}
    yield pairs({"proxy": links.proxy(said(found, "proxy"))} | versions)
    yield tag("pre", joined((_changed(each) for each in words(found, "diff")), "\n"), tabindex="0")
    yield tag("h2", text("Made from"))
    yield made_from(found)


def _changed(line: str) -> Markup:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1])
    return tag("span", text(line), class_=kind) if kind else text(line)


def of_published(found: Document) -> Verdict:
    """Return how many proxies are served how many configurations."""
    snapshots = records(found, "snapshots")
    proxies = sum(len(words(each, "proxies")) for each in snapshots)
    if not snapshots:
        return Verdict(Tone.PLAIN, "Nothing is published.")
    many = counted(proxies, "proxy is", "proxies are")
    return Verdict(Tone.GOOD, f"{many} served {counted(len(snapshots), 'configuration')}.")


def _published(found: Document, _asked: Asked) -> Iterable[Markup]:
    snapshots = records(found, "snapshots")
    if not snapshots:
        yield tag("p", text("It fills as soon as a Workload with a uuid is read."), class_="empty")
    for each in snapshots:
        proxies = words(each, "proxies")
        yield tag("h2", text(counted(len(proxies), "proxy", "proxies")))
        yield listed(links.proxy(cn) for cn in proxies)
        resources = part(each, "resources")
        rows: list[Document] = [
            {"type": word, "name": named, "version": version}
            for word in resources
            for named, version in part(resources, word).items()
        ]
        yield table(rows, _versions(proxies[0] if proxies else ""), "It is served nothing.")
    yield tag("h2", text("Whose workloads get traffic"))
    admitted = words(found, "admitted")
    yield listed(map(links.proxy, admitted)) if admitted else tag("p", text("All do."), class_="empty")


def _versions(cn: str) -> tuple[Column, ...]:
    return (
        Column("Type", lambda each: text(said(each, "type")), ("type",)),
        Column(
            "Resource", lambda each: links.resource(cn, said(each, "type"), said(each, "name")), ("name",)
        ),
        Column("Version", lambda each: code(said(each, "version")), ("version",)),
    )


STREAMS: Final = Look(
    "Streams",
    of_streams,
    _xds,
    (Form((_PROXY, Field("resource", "Resource: type/name", "route/rds-inbound.8080")), "Show its pushes"),),
    "The open streams by type; of one proxy also its last pushes, and what a resource was made from.",
)
DIFFERENCE: Final = Look(
    "Compare",
    of_difference,
    _difference,
    (
        Form(
            (
                _PROXY,
                Field("type", "Type", choices=TYPES, required=True),
                Field("name", "Resource", "rds-inbound.8080", required=True),
                Field("from", "From version", "the one before"),
                Field("to", "To version", "the one in force"),
            ),
            "Compare",
        ),
    ),
    "Two versions of a resource that a proxy was sent.",
)
PUBLISHED: Final = Look(
    "Published", of_published, _published, shows="The resources of each proxy, by version."
)
