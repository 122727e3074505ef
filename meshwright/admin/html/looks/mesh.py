"""Layout of the pages Sources, Configuration and Event loop."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, number, part, records, words
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import Markup, joined, listed, name, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted
from meshwright.admin.html.values import NONE, moment, shown
from meshwright.admin.jsonable import Document
from meshwright.mesh.kinds import MESH_CONFIG

SLOW: Final = 1.0
"""Seconds of a blocked event loop from which clients notice the delay."""


def of_sources(result: Document) -> Verdict:
    """Return the verdict of the page Sources: failures, and numbers of stale, refused and held objects."""
    sources = records(result, "sources")
    if not sources:
        return Verdict(Tone.WARNING, "No source is configured, so the mesh is empty.")
    failing = [field_text(source, "name") for source in sources if field_text(source, "error")]
    if failing:
        effect = "cannot be read completely; their last objects stay in force"
        return Verdict(Tone.BAD, f"Degraded: {', '.join(failing)} {effect}.")
    totals = [
        sum(int(number(part(source, "objects"), kind)) for source in sources) for kind in ("stale", "refused")
    ]
    held = sum(len(words(source, "held")) for source in sources)
    wrong = [
        f"{n} {word}" for n, word in zip((*totals, held), ("stale", "refused", "held back"), strict=True) if n
    ]
    many = counted(len(sources), "source is", "sources are")
    if wrong:
        return Verdict(Tone.WARNING, f"{many} read; objects: {', '.join(wrong)}.")
    return Verdict(Tone.GOOD, f"{many} read, and all objects are in force.")


def _objects(source: Document) -> Markup:
    result = part(source, "objects")
    counts = {item: int(number(result, item)) for item in ("good", "stale", "refused")}
    tones = {"good": Tone.GOOD, "stale": Tone.WARNING, "refused": Tone.BAD}
    drawn = {item: badge(f"{n} {item}", tones[item]) for item, n in counts.items() if n}
    wrong = (
        tag("a", markup, href="/debug/policies") if kind != "good" else markup
        for kind, markup in drawn.items()
    )
    return joined(wrong, " ") or NONE


def _error(source: Document) -> Markup:
    if not field_text(source, "error"):
        return badge("ok", Tone.GOOD)
    since = (
        (text(" since "), moment(field_text(source, "error_since")))
        if field_text(source, "error_since")
        else ()
    )
    return joined((badge("error"), *since, tag("div", name(field_text(source, "error")))))


def _when(title: str, age: str, at: str) -> Column:
    """Return a table column with the time of an event and the age of the event."""

    def shown(source: Document) -> Markup:
        if not field_text(source, at):
            return text("never")
        return joined((text(f"{field_text(source, age)} ago"), tag("div", moment(field_text(source, at)))))

    return Column(title, shown, (age, f"{age}_seconds", at))


def _held_objects(source: Document) -> Markup:
    return listed(map(links.in_sentence, words(source, "held"))) if words(source, "held") else NONE


_SOURCE: Final = (
    Column("Source", lambda item: name(field_text(item, "name")), ("name", "watches")),
    Column("State", _error, ("error", "error_since")),
    Column("Objects", _objects, ("objects",)),
    _when("Last full read", "age", "last_full_read"),
    _when("Last change", "event_age", "last_event"),
    Column("Held back", _held_objects, ("held",)),
)


def _errors(watch: Document) -> Markup:
    errors = part(watch, "errors")
    return listed(text(f"{count} {reason}") for reason, count in errors.items()) if errors else NONE


def _kind(watch: Document) -> Markup:
    where = f" in {field_text(watch, 'namespace')}" if field_text(watch, "namespace") else ""
    return joined((name(field_text(watch, "name")), text(where)))


_WATCH: Final = (
    Column("Kind", _kind, ("name", "namespace")),
    Column("State", _error, ("error", "error_since")),
    _when("Last answer", "heard_age", "heard"),
    _when("Last change", "event_age", "last_event"),
    _when("Last list", "list_age", "last_list"),
    Column("Events", lambda item: text(str(int(number(item, "events")))), ("events",)),
    Column("Relists", lambda item: text(str(int(number(item, "relists")))), ("relists",)),
    Column("Errors", _errors, ("errors",)),
)


def _sources(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    empty = "No source is configured: `meshwright serve --mesh DIRECTORY` reads manifests of a directory."
    sources = records(result, "sources")
    yield table(sources, _SOURCE, empty, lambda source: field_text(source, "name"))
    for source in sources:
        if watches := records(source, "watches"):
            yield tag("h2", joined((text("Watches of "), name(field_text(source, "name")))))
            yield table(watches, _WATCH, "", lambda watch: field_text(watch, "name"))


def of_config(result: Document) -> Verdict:
    """Return the verdict of the page Configuration: WARNING before the first MeshConfig is read."""
    if result.get("mesh_config") is None:
        return Verdict(
            Tone.WARNING, "No source has been read yet; the page shows only the settings of this server."
        )
    return Verdict(
        Tone.PLAIN, f"The MeshConfig in force, and {counted(len(part(result, 'settings')), 'setting')}."
    )


def _config(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    for title, field in ((MESH_CONFIG.name, "mesh_config"), ("Settings", "settings")):
        yield tag("h2", text(title))
        yield shown(result.get(field))


def of_loop(result: Document) -> Verdict:
    """Return the verdict of the page Event loop: WARNING after a blockage of at least SLOW seconds."""
    late = [number(record, "seconds") for record in records(result, "late")]
    if not late:
        return Verdict(Tone.GOOD, "The event loop was never blocked.")
    tone = Tone.WARNING if max(late) >= SLOW else Tone.GOOD
    return Verdict(
        tone, f"The event loop was blocked {counted(len(late), 'time')} (longest: {max(late):.3f} s)."
    )


_LATE: Final = (
    Column("When", lambda item: moment(field_text(item, "at"), exact=True), ("at",)),
    Column("Blocked for", lambda item: text(f"{number(item, 'seconds'):.3f} s"), ("seconds",)),
    Column(
        "Cause",
        lambda item: name(field_text(item, "doing")) if field_text(item, "doing") else NONE,
        ("doing",),
    ),
)


def _loop(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    yield table(records(result, "late"), _LATE, "No blockage was recorded.")


SOURCES: Final = PageLook("Sources", of_sources, _sources, shows="Age, objects and errors of each source.")
CONFIG: Final = PageLook(
    "Configuration", of_config, _config, shows="The MeshConfig in force, and the settings of this server."
)
LOOP: Final = PageLook(
    "Event loop",
    of_loop,
    _loop,
    shows="The last moments at which the event loop was blocked, with the cause; newest first.",
)
