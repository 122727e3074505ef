"""Layout of the pages Sources, Configuration and Event loop."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import number, part, records, said, words
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


def of_sources(found: Document) -> Verdict:
    """Return the state of the sources, with the numbers of stale, refused and held objects."""
    sources = records(found, "sources")
    if not sources:
        return Verdict(Tone.WARNING, "There is no source: the mesh is empty.")
    failing = [said(each, "name") for each in sources if said(each, "error")]
    if failing:
        said_last = "cannot be read whole; the objects read before stay in force"
        return Verdict(Tone.BAD, f"Degraded: {', '.join(failing)} {said_last}.")
    totals = [
        sum(int(number(part(each, "objects"), kind)) for each in sources) for kind in ("stale", "refused")
    ]
    held = sum(len(words(each, "held")) for each in sources)
    wrong = [
        f"{n} {word}" for n, word in zip((*totals, held), ("stale", "refused", "held"), strict=True) if n
    ]
    many = counted(len(sources), "source is", "sources are")
    if wrong:
        return Verdict(Tone.WARNING, f"{many} read; of the objects {', '.join(wrong)}.")
    return Verdict(Tone.GOOD, f"{many} read, and all that they hold is in force.")


def _objects(source: Document) -> Markup:
    found = part(source, "objects")
    counts = {each: int(number(found, each)) for each in ("good", "stale", "refused")}
    tones = {"good": Tone.GOOD, "stale": Tone.WARNING, "refused": Tone.BAD}
    drawn = {each: badge(f"{n} {each}", tones[each]) for each, n in counts.items() if n}
    wrong = (
        tag("a", each, href="/debug/policies") if kind != "good" else each for kind, each in drawn.items()
    )
    return joined(wrong, " ") or NONE


def _error(source: Document) -> Markup:
    if not said(source, "error"):
        return badge("ok", Tone.GOOD)
    since = (text(" since "), moment(said(source, "error_since"))) if said(source, "error_since") else ()
    return joined((badge("error"), *since, tag("div", name(said(source, "error")))))


def _when(title: str, age: str, at: str) -> Column:
    """Return a column of times with ages."""

    def shown(source: Document) -> Markup:
        if not said(source, at):
            return text("never")
        return joined((text(f"{said(source, age)} ago"), tag("div", moment(said(source, at)))))

    return Column(title, shown, (age, f"{age}_seconds", at))


def _held(source: Document) -> Markup:
    return listed(map(links.in_sentence, words(source, "held"))) if words(source, "held") else NONE


_SOURCE: Final = (
    Column("Source", lambda each: name(said(each, "name")), ("name", "watches")),
    Column("State", _error, ("error", "error_since")),
    Column("Objects", _objects, ("objects",)),
    _when("Read whole", "age", "last_full_read"),
    _when("Last event", "event_age", "last_event"),
    Column("Held", _held, ("held",)),
)


def _errors(watch: Document) -> Markup:
    errors = part(watch, "errors")
    return listed(text(f"{count} {reason}") for reason, count in errors.items()) if errors else NONE


def _kind(watch: Document) -> Markup:
    where = f" in {said(watch, 'namespace')}" if said(watch, "namespace") else ""
    return joined((name(said(watch, "name")), text(where)))


_WATCH: Final = (
    Column("Kind", _kind, ("name", "namespace")),
    Column("State", _error, ("error", "error_since")),
    _when("Heard of", "heard_age", "heard"),
    _when("Last event", "event_age", "last_event"),
    _when("Listed", "list_age", "last_list"),
    Column("Events", lambda each: text(str(int(number(each, "events")))), ("events",)),
    Column("Listed again", lambda each: text(str(int(number(each, "relists")))), ("relists",)),
    Column("Errors", _errors, ("errors",)),
)


def _sources(found: Document, _asked: PageRequest) -> Iterable[Markup]:
    empty = "No source is configured: `meshwright serve --mesh DIRECTORY` reads manifests of a directory."
    sources = records(found, "sources")
    yield table(sources, _SOURCE, empty, lambda each: said(each, "name"))
    for each in sources:
        if watches := records(each, "watches"):
            yield tag("h2", joined((text("Watched by "), name(said(each, "name")))))
            yield table(watches, _WATCH, "", lambda watch: said(watch, "name"))


def of_config(found: Document) -> Verdict:
    """Return a warning before the first configuration is read."""
    if found.get("mesh_config") is None:
        return Verdict(Tone.WARNING, "Nothing has been read yet; the settings are those of this server.")
    return Verdict(
        Tone.PLAIN, f"The MeshConfig in force, and {counted(len(part(found, 'settings')), 'setting')}."
    )


def _config(found: Document, _asked: PageRequest) -> Iterable[Markup]:
    for title, field in ((MESH_CONFIG.name, "mesh_config"), ("Settings", "settings")):
        yield tag("h2", text(title))
        yield shown(found.get(field))


def of_loop(found: Document) -> Verdict:
    """Return a warning if the event loop was blocked for at least SLOW seconds."""
    late = [number(each, "seconds") for each in records(found, "late")]
    if not late:
        return Verdict(Tone.GOOD, "The event loop was never held.")
    tone = Tone.WARNING if max(late) >= SLOW else Tone.GOOD
    return Verdict(tone, f"Held {counted(len(late), 'time')} of late, for {max(late):.3f} s at most.")


_LATE: Final = (
    Column("When", lambda each: moment(said(each, "at"), exact=True), ("at",)),
    Column("Held for", lambda each: text(f"{number(each, 'seconds'):.3f} s"), ("seconds",)),
    Column("By", lambda each: name(said(each, "doing")) if said(each, "doing") else NONE, ("doing",)),
)


def _loop(found: Document, _asked: PageRequest) -> Iterable[Markup]:
    yield table(records(found, "late"), _LATE, "It fills when the loop turns late.")


SOURCES: Final = PageLook(
    "Sources", of_sources, _sources, shows="How fresh each source is, and what it holds."
)
CONFIG: Final = PageLook(
    "Configuration", of_config, _config, shows="The MeshConfig in force, and the settings."
)
LOOP: Final = PageLook(
    "Event loop", of_loop, _loop, shows="When the event loop was held, and by what; newest first."
)
