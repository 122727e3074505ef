"""What the server's pages say, as values that are judged."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from checks.certificates import Certificate
from checks.problems import Found
from checks.server import Moment, Proxy, Source
from cli.printing.answers import Found as Answer
from cli.printing.answers import records, texts
from mesh.problems import Severity


def sources(page: Answer) -> tuple[Source, ...]:
    """Read `/debug/sources`."""
    return tuple(map(_source, records(page, "sources")))


def _source(each: Answer) -> Source:
    objects = each.get("objects")
    counts: Answer = objects if isinstance(objects, Mapping) else {}
    return Source(
        str(each.get("name")),
        str(each.get("error") or ""),
        str(each.get("error_since") or ""),
        tuple(texts(each, "held")),
        _number(counts, "good"),
        _number(counts, "stale"),
        _number(counts, "refused"),
        str(each.get("age") or ""),
    )


def proxies(page: Answer) -> tuple[Proxy, ...]:
    """Read `/debug/proxy`."""
    return tuple(map(_proxy, records(page, "proxies")))


def _proxy(each: Answer) -> Proxy:
    sync, pending = (each.get(name) for name in ("sync", "pending_seconds"))
    states = sync if isinstance(sync, Mapping) else {}
    waits = pending if isinstance(pending, Mapping) else {}
    return Proxy(
        str(each.get("cn")),
        str(each.get("state")),
        bool(each.get("held")),
        str(each.get("why") or ""),
        tuple(sorted(name for name, state in states.items() if state == "nacked")),
        timedelta(seconds=max(map(float, waits.values()), default=0.0)),
    )


def problems(page: Answer) -> tuple[Found, ...]:
    """Read the problems of `/debug/policies`."""
    return tuple(
        Found(str(each.get("code")), Severity(str(each.get("severity"))), str(each.get("line")))
        for each in records(page, "problems")
    )


def failures(page: Answer) -> tuple[str, ...]:
    """Read the groups of `/debug/policies` that cannot be computed."""
    return tuple(f"{each.get('group')}: {each.get('error')}" for each in records(page, "failures"))


def moments(page: Answer) -> tuple[Moment, ...]:
    """Read `/debug/loop`."""
    return tuple(
        Moment(
            _moment(each.get("at")),
            timedelta(seconds=float(str(each.get("seconds")))),
            str(each.get("doing") or ""),
        )
        for each in records(page, "late")
    )


def services(page: Answer) -> tuple[Certificate, ...]:
    """Read the service certificates of `/debug/certs`."""
    return tuple(
        Certificate(
            str(each.get("identity")), _moment(each.get("not_before")), _moment(each.get("not_after"))
        )
        for each in records(page, "service_certificates")
    )


def newest(page: Answer, names: Iterable[str] | None = None) -> tuple[Certificate, ...]:
    """Read the newest certificate of each proxy, of those that are not revoked; of these `names` alone."""
    wanted = None if names is None else frozenset(names)
    found = {each.whose: each for each in _issued(page)}
    return tuple(each for each in found.values() if wanted is None or each.whose in wanted)


def issued(page: Answer) -> tuple[datetime, ...]:
    """Read when proxy certificates were issued."""
    return tuple(each.not_before for each in _issued(page))


def _issued(page: Answer) -> Iterator[Certificate]:
    rows = [each for each in records(page, "proxy_certificates") if each.get("state") != "revoked"]
    for each in sorted(rows, key=lambda each: str(each.get("issued_at"))):
        made, ends = _moment(each.get("issued_at")), _moment(each.get("not_after"))
        yield Certificate(str(each.get("cn")), made, ends)


def _number(page: Answer, name: str) -> int:
    found = page.get(name)
    return found if isinstance(found, int) else 0


def _moment(value: object) -> datetime:
    return datetime.fromisoformat(str(value))
