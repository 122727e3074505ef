"""Layout of the page Policies: the mesh objects in use, and the problems."""

from collections.abc import Iterable, Sequence
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, items, part, records, words
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.markup import NOTHING, Markup, code, detail, joined, name, tag, text
from meshwright.admin.html.tables import Column, plain, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted, tone_of
from meshwright.admin.html.values import NONE, pairs, raw
from meshwright.admin.jsonable import Document, Json


def of_policies(result: Document) -> Verdict:
    """Return the verdict of the page Policies: the number of objects in use, or the numbers of problems."""
    severities = [field_text(record, "severity") for record in records(result, "problems")]
    failures = len(records(result, "failures"))
    wrong = [counted(severities.count(item), item) for item in ("error", "warning") if severities.count(item)]
    wrong += [counted(failures, "failed group")] if failures else []
    if wrong:
        tone = Tone.BAD if failures or "error" in severities else Tone.WARNING
        return Verdict(tone, f"Problems: {', '.join(wrong)}.")
    objects = len(items(result, "objects"))
    if not objects:
        return Verdict(Tone.WARNING, "No object is in force.")
    return Verdict(
        Tone.GOOD, f"{counted(objects, 'object is', 'objects are')} in force, without errors and warnings."
    )


def _field(problem: Document) -> Markup:
    value = field_text(problem, "value")
    parts = (
        tag("div", code(field_text(problem, "field"))) if field_text(problem, "field") else NOTHING,
        tag("div", text("is "), code(value)) if value else NOTHING,
    )
    return joined(parts) if any(parts) else NONE


def _object(problem: Document) -> Markup:
    return links.mesh_object(field_text(problem, "object")) if field_text(problem, "object") else NONE


_PROBLEM: Final = (
    Column("Severity", lambda item: badge(field_text(item, "severity")), ("severity", "line")),
    Column("Code", lambda item: text(field_text(item, "code")), ("code",)),
    Column("Object", _object, ("object",)),
    Column("Origin", lambda item: links.origin(field_text(item, "origin")), ("origin",)),
    Column("Field", _field, ("field", "value")),
    Column("Expected", lambda item: links.in_sentence(field_text(item, "expected")), ("expected",)),
)


def _meanwhile(failure: Document) -> str:
    return (
        "its proxies keep the previous configuration"
        if failure.get("kept") is True
        else "its proxies get no configuration"
    )


_FAILURE: Final = (
    plain("Group", "group"),
    plain("Error", "error"),
    Column("Effect", lambda item: text(_meanwhile(item)), ("kept",)),
)


def _in_force(result: Document) -> Markup:
    state = badge("stale" if result.get("stale") is True else "in force")
    return joined((state, *(badge(f"with {word}", tone_of(word)) for word in words(result, "wrong"))), " ")


def _key(document: Document) -> str:
    place = filter(None, (field_text(document, "namespace"), field_text(document, "name")))
    return f"{field_text(document, 'kind')} {'/'.join(place)}"


_OBJECT: Final = (
    Column("Object", lambda item: links.mesh_object(_key(item)), ("kind", "namespace", "name")),
    Column("State", _in_force, ("stale", "wrong")),
    Column("Origin", lambda item: links.origin(field_text(item, "origin")), ("origin",)),
    Column("Value", lambda item: detail(text("value"), raw(item.get("value"))), ("value",)),
)


def _policies(result: Document, page_request: PageRequest) -> Iterable[Markup]:
    one = any(item == "object" for item, _ in page_request.query)
    yield tag("h2", text("Problems"))
    order = list(Tone)
    problems = sorted(
        records(result, "problems"), key=lambda record: order.index(tone_of(field_text(record, "severity")))
    )
    yield table(problems, _PROBLEM, "No problems found.")
    if failures := records(result, "failures"):
        yield tag("h2", text("Failed groups"))
        yield table(failures, _FAILURE, "")
    yield tag("h2", text("Objects in force"))
    worst = _worst(problems)
    objects = [record | {"wrong": worst.get(_key(record), [])} for record in records(result, "objects")]
    if one and objects:
        yield joined(_one(item) for item in objects)
        return
    empty = "This object is not in force: correct it at its origin." if one else _EMPTY
    yield table(objects, _OBJECT, empty)


def _worst(problems: Sequence[Document]) -> dict[str, list[Json]]:
    """Return the worst severity of each object; `problems` is sorted with the worst first."""
    # Reversed, so that the worst problem of an object is the last to be stored.
    return {
        field_text(problem, "object"): [field_text(problem, "severity")] for problem in reversed(problems)
    }


_EMPTY: Final = "No object is in force. Add manifests to a source: see the page Sources."


def _one(result: Document) -> Markup:
    head = {
        "object": name(_key(result)),
        "state": _in_force(result),
        "origin": links.origin(field_text(result, "origin")),
    }
    return joined((pairs(head), *_attachment(part(result, "attachment")), raw(result.get("value"))))


def _attachment(attachment: Document) -> Iterable[Markup]:
    """Yield the table of a route's parents, and the state of its references; nothing for other objects."""
    if not attachment:
        return
    yield tag("h2", text("Attachment"))
    yield table(records(attachment, "parents"), _PARENT, "No parent is a Service.")
    references, dropped = part(attachment, "references"), field_text(attachment, "dropped")
    tone = Tone.GOOD if references.get("resolved") is True else Tone.BAD
    message = links.in_sentence(field_text(references, "message"))
    state = joined((badge(field_text(references, "reason"), tone), message), " ")
    yield pairs({"references": state} | ({"dropped": text(dropped)} if dropped else {}))


def _verdict(parent: Document) -> Markup:
    return badge(field_text(parent, "reason"), Tone.GOOD if parent.get("accepted") is True else Tone.BAD)


_PARENT: Final = (
    Column("Parent", lambda item: links.service(field_text(item, "service")), ("service",)),
    Column("Ports", lambda item: text(", ".join(str(port) for port in items(item, "ports"))), ("ports",)),
    Column("State", _verdict, ("accepted", "reason")),
    Column("Message", lambda item: links.in_sentence(field_text(item, "message")), ("message",)),
)


POLICIES: Final = PageLook(
    "Policies",
    of_policies,
    _policies,
    (Form((Field("object", "Object: kind namespace/name", "TrafficTarget shop/buyers"),), "Show object"),),
    "The objects in force, and all problems.",
    frozenset({"object"}),
)
