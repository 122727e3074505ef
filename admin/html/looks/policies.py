"""Objects in force and what is wrong with them; who may call what; why a call may pass or not."""

from collections.abc import Iterable
from typing import Final

from admin.html import links
from admin.html.fields import items, number, records, said, words
from admin.html.forms import Field, Form
from admin.html.frame import Asked
from admin.html.looks.look import Look
from admin.html.markup import NOTHING, Markup, code, detail, joined, listed, name, tag, text
from admin.html.tables import Column, plain, table
from admin.html.tones import Tone, Verdict, badge, counted, tone_of, worst
from admin.html.values import NONE, pairs, raw, shown
from admin.pages.jsonable import Document, Json


def of_policies(found: Document) -> Verdict:
    """Return how many objects are in force, and what is wrong."""
    severities = [said(each, "severity") for each in records(found, "problems")]
    failures = len(records(found, "failures"))
    wrong = [counted(severities.count(each), each) for each in ("error", "warning") if severities.count(each)]
    wrong += [counted(failures, "group that failed", "groups that failed")] if failures else []
    if wrong:
        tone = Tone.BAD if failures or "error" in severities else Tone.WARNING
        return Verdict(tone, f"In what was read: {', '.join(wrong)}.")
    objects = len(items(found, "objects"))
    if not objects:
        return Verdict(Tone.WARNING, "No object is in force.")
    return Verdict(
        Tone.GOOD, f"{counted(objects, 'object is', 'objects are')} in force, and nothing is wrong."
    )


def _field(problem: Document) -> Markup:
    value = said(problem, "value")
    parts = (
        tag("div", code(said(problem, "field"))) if said(problem, "field") else NOTHING,
        tag("div", text("is "), code(value)) if value else NOTHING,
    )
    return joined(parts) if any(parts) else NONE


def _object(problem: Document) -> Markup:
    return links.mesh_object(said(problem, "object")) if said(problem, "object") else NONE


_PROBLEM: Final = (
    Column("Severity", lambda each: badge(said(each, "severity")), ("severity", "line")),
    Column("Code", lambda each: text(said(each, "code")), ("code",)),
    Column("Object", _object, ("object",)),
    Column("Where", lambda each: name(said(each, "origin")), ("origin",)),
    Column("Field", _field, ("field", "value")),
    Column("What would be right", lambda each: links.in_sentence(said(each, "expected")), ("expected",)),
)


def _meanwhile(failure: Document) -> str:
    return (
        "its proxies keep what they have" if failure.get("kept") is True else "its proxies are served nothing"
    )


_FAILURE: Final = (
    plain("Group", "group"),
    plain("Error", "error"),
    Column("Meanwhile", lambda each: text(_meanwhile(each)), ("kept",)),
)


def _in_force(found: Document) -> Markup:
    state = badge("stale" if found.get("stale") is True else "in force")
    return joined((state, *(badge(f"with {each}", tone_of(each)) for each in words(found, "wrong"))), " ")


def _key(found: Document) -> str:
    return f"{said(found, 'kind')} {'/'.join(filter(None, (said(found, 'namespace'), said(found, 'name'))))}"


_OBJECT: Final = (
    Column("Object", lambda each: links.mesh_object(_key(each)), ("kind", "namespace", "name")),
    Column("State", _in_force, ("stale", "wrong")),
    Column("Where", lambda each: name(said(each, "origin")), ("origin",)),
    Column("Value", lambda each: detail(text("value"), raw(each.get("value"))), ("value",)),
)


def _policies(found: Document, asked: Asked) -> Iterable[Markup]:
    one = any(each == "object" for each, _ in asked.query)
    yield tag("h2", text("Problems"))
    order = list(Tone)
    problems = sorted(
        records(found, "problems"), key=lambda each: order.index(tone_of(said(each, "severity")))
    )
    yield table(problems, _PROBLEM, "Nothing is wrong with what was read.")
    if failures := records(found, "failures"):
        yield tag("h2", text("Groups that failed"))
        yield table(failures, _FAILURE, "")
    yield tag("h2", text("In force"))
    objects = [each | {"wrong": _wrong(problems, _key(each))} for each in records(found, "objects")]
    if one and objects:
        yield joined(_one(each) for each in objects)
        return
    empty = "No such object is in force: mend it where it stands." if one else _EMPTY
    yield table(objects, _OBJECT, empty)


def _wrong(problems: Iterable[Document], key: str) -> list[Json]:
    """Return the worst severity of what is wrong with an object, if anything is."""
    found = [said(each, "severity") for each in problems if said(each, "object") == key]
    return [min(found, key=lambda each: list(Tone).index(tone_of(each)))] if found else []


_EMPTY: Final = "No object is in force. Put manifests where a source reads them: see Sources."


def _one(found: Document) -> Markup:
    head = {"object": name(_key(found)), "state": _in_force(found), "where": name(said(found, "origin"))}
    return joined((pairs(head), raw(found.get("value"))))


def of_access(found: Document) -> Verdict:
    """Return of how many pairs calls may pass."""
    records_ = records(found, "access")
    may = sum(each.get("allowed") is True for each in records_)
    return Verdict(
        Tone.PLAIN, f"{may} of {counted(len(records_), 'pair')} of identity and service port may call."
    )


def _may(record: Document) -> Markup:
    # A no is as it should be where nobody said yes: it is no fault.
    return badge("allowed") if record.get("allowed") is True else badge("refused", Tone.PLAIN)


def _to(record: Document) -> Markup:
    to = said(record, "destination_service")
    return joined((links.service(to), text(f":{said(record, 'port')}")))


def _requests(record: Document) -> Markup:
    return listed(code(each) for each in words(record, "requests")) if words(record, "requests") else NONE


def _by(record: Document) -> Markup:
    return listed(links.in_sentence(each) for each in words(record, "by")) if words(record, "by") else NONE


def _why(record: Document) -> Markup:
    to = f"{said(record, 'destination_service')}:{said(record, 'port')}"
    return links.link("why", links.href("/debug/explain", {"from": said(record, "source"), "to": to}))


_ACCESS: Final = (
    Column("From", lambda each: links.identity(said(each, "source")), ("source",)),
    Column("To", _to, ("destination_service", "port")),
    Column("May call", _may, ("allowed",)),
    Column("Protocol", lambda each: text(said(each, "protocol")), ("protocol",)),
    Column("Requests", _requests, ("requests",)),
    Column("By", _by, ("by",)),
    Column("Explain", _why, ()),
)


def _access(found: Document, _asked: Asked) -> Iterable[Markup]:
    empty = "Nobody calls anybody. It fills when a Service and a Workload with a serviceAccount are read."
    yield table(records(found, "access"), _ACCESS, empty)


def of_explained(found: Document) -> Verdict:
    """Return the answer, and whether it is in force."""
    if "usage" in found:
        return Verdict(Tone.PLAIN, "Ask whether a call may pass.")
    how = " ".join(filter(None, (said(found, "method"), said(found, "path"))))
    sentence = f"{said(found, 'from')} to {said(found, 'to')} {how}".rstrip()
    tones = [tone_of(said(found, "answer")), _IN_FORCE.get(said(found, "in_force"), Tone.PLAIN)]
    return Verdict(worst(tones), f"{sentence}: {said(found, 'headline')}.", said(found, "answer"))


_IN_FORCE: Final = {"yes": Tone.GOOD, "no": Tone.BAD, "unknown": Tone.WARNING}


def _explained(found: Document, _asked: Asked) -> Iterable[Markup]:
    if "usage" in found:
        return
    yield pairs(
        {
            "policy says": badge(said(found, "policy")),
            "in force": badge(said(found, "in_force"), _IN_FORCE.get(said(found, "in_force"))),
            **({"because": _sentences(found, "in_force_because")} if found.get("in_force_because") else {}),
            **({"decided by": _sentences(found, "because")} if found.get("because") else {}),
            **({"logged": shown(found.get("logged"))} if found.get("logged") else {}),
        }
    )
    yield tag("h2", text("Step by step"))
    yield tag("ol", *map(_step, records(found, "steps")))
    if backends := records(found, "backends"):
        yield tag("h2", text("Who may answer"))
        yield table(backends, _BACKEND, "")
    if found.get("besides"):
        yield tag("h2", text("Besides"))
        yield _sentences(found, "besides")
    if missing := items(found, "missing"):
        yield tag("h2", text("What would have to be added"))
        yield from map(raw, missing)


def _sentences(found: Document, field: str) -> Markup:
    return listed(links.in_sentence(each) for each in words(found, field))


def _identities(found: Document, field: str) -> Markup:
    return listed(map(links.identity, words(found, field))) if words(found, field) else NONE


_BACKEND: Final = (
    Column("Service", lambda each: links.service(said(each, "service")), ("service",)),
    Column("Weight", lambda each: text(said(each, "weight")), ("weight",)),
    Column("Admitted by", lambda each: _identities(each, "admitted"), ("admitted",)),
    Column("Refused by", lambda each: _identities(each, "refused"), ("refused",)),
)


def _step(step: Document) -> Markup:
    objects = [
        joined((links.mesh_object(said(each, "object")), text(f" ({said(each, 'origin')})")))
        for each in records(step, "objects")
    ]
    depth = min(int(number(step, "depth")), 5)
    return tag(
        "li",
        links.in_sentence(said(step, "text")),
        listed(objects) if objects else NOTHING,
        class_=f"deep{depth}",
    )


POLICIES: Final = Look(
    "Policies",
    of_policies,
    _policies,
    (Form((Field("object", "Object: kind namespace/name", "TrafficTarget shop/buyers"),), "Show it"),),
    "The objects in force, and everything that is wrong.",
    frozenset({"object"}),
)
ACCESS: Final = Look(
    "Access",
    of_access,
    _access,
    (Form((Field("source", "From: namespace/service account", "shop/buyer"),), "Show whom it may call"),),
    "Who may call what, and by which object.",
    frozenset({"source"}),
)
EXPLAIN: Final = Look(
    "Explain",
    of_explained,
    _explained,
    (
        Form(
            (
                Field("from", "From: namespace/service account", "shop/buyer"),
                Field("to", "To: namespace/service:port", "shop/store:80"),
                Field("method", "Method", "GET"),
                Field("path", "Path", "/"),
                Field("header", "Header", "name: value", several=True),
                Field("line", "Or a line of a sidecar's access log", '{"start_time": …'),
            ),
            "Explain",
        ),
    ),
    "Why a call may pass or not.",
)
