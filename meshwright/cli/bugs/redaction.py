"""Redaction: replace secrets in text and JSON by a placeholder. Pure.

Pages of the server contain no secrets by design. Redaction is the second line of defence, against secrets in
unexpected fields of users' objects, and in log files.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from meshwright.mesh.kinds import SECRET

HIDDEN: Final = "[withheld]"

_WORDS: Final = (
    r"(?:authorization|cookies?|passw(?:or)?d|passphrase|secret|token|jwt|credentials?|"
    r"api[-_]?key|private[-_]?key|access[-_]?key)"
)
_NAME: Final = re.compile(rf"(?:^|[-_. ]){_WORDS}$", re.IGNORECASE)
_SCHEME: Final = r"(?:Bearer|Basic|Digest|Negotiate)"
_BEHIND_A_NAME: Final = (
    rf"(?P<name>\b(?:[\w.-]*[-_.])?{_WORDS}[\"']?\s*[:=]\s*[\"']?)"
    rf"(?!\[withheld\]|{_SCHEME} \[)[^\s\"',;}}\]]+"
)
_RULES: Final = tuple(
    (re.compile(pattern, flags), put)
    for pattern, flags, put in (
        (r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL, HIDDEN),
        (r"LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]+", 0, HIDDEN),  # a PEM file in base64, as in a Secret
        (rf"\b({_SCHEME})\s+[^\s\"',;]+", re.IGNORECASE, rf"\1 {HIDDEN}"),
        (r"\beyJ[\w-]+\.[\w-]+(\.[\w-]*)*", 0, HIDDEN),  # a JSON web token
        # Tokens of Vault, GitHub, GitLab and Slack, then access keys of AWS, then passwords in URLs.
        (r"\b(hvs|hvb|hvr|gh[pousr]|glpat|xox[abprs])[._-][\w.-]+", 0, HIDDEN),
        (r"\bAKIA[0-9A-Z]{16}\b", 0, HIDDEN),
        (r"://[^/\s:@\"']+:[^/\s@\"']+@", 0, f"://{HIDDEN}@"),
        (_BEHIND_A_NAME, re.IGNORECASE, rf"\g<name>{HIDDEN}"),
    )
)  # fmt: skip
_WHO: Final = ("kind", "namespace", "name", "origin", "stale")
_WHERE: Final = ("severity", "code", "origin", "object", "field")
_QUOTING: Final = frozenset({"problems", "rejections", "withheld"})
_OF_A_SECRET: Final = frozenset({"data", "stringData"})
_VALUES: Final = ("value", "raw_value", "rawValue", "exact", "prefix", "regex")


def of_text(text: str) -> str:
    """Return text without anything like a secret: keys, tokens, passwords, and values after such names."""
    for pattern, put in _RULES:
        text = pattern.sub(put, text)
    return text


def of_json(value: object) -> object:
    """Return a JSON value without secrets, which are recognised by their name, place or form."""
    match value:
        case str():
            return of_text(value)
        case list():
            return [of_json(item) for item in value]
        case dict():
            return {str(name): _field(value, str(name), inner) for name, inner in value.items()}
        case _:
            return value


def _field(around: Mapping[str, object], name: str, value: object) -> object:
    """Return a field's value, redacted completely in a Secret, under a secret's name, or beside such a name.

    For example, the `value` in `{"name": "Authorization", "value": "x"}` is redacted.
    """
    in_secret = around.get("kind") == SECRET.name and name in _OF_A_SECRET
    header = around.get("name", around.get("key", around.get("header")))
    beside = name in _VALUES and isinstance(header, str) and _NAME.search(header) is not None
    if in_secret or beside or _NAME.search(name):
        return _hidden(value)
    return of_json(value)


def _hidden(value: object) -> object:
    """Replace every text and number, and keep the shape, so that a reader sees which fields were set."""
    match value:
        case dict():
            return {str(name): _hidden(inner) for name, inner in value.items()}
        case list():
            return [_hidden(item) for item in value]
        case None | bool():
            return value
        case _:
            return HIDDEN


def of_log(text: str) -> str:
    """Return lines of a log without secrets; a line of JSON stays JSON.

    A problem keeps its code, place and object. The text after them is removed, because this text quotes field
    values.
    """
    # Text rules first: a key can span several lines.
    return "".join(f"{_line(line)}\n" for line in of_text(text).splitlines())


def of_policies(page: object) -> object:
    """Return the page of policies with only kind, name and origin of objects, and code and place of problems.

    Any value in an object can be a secret, for example a header in a policy, even under a harmless name.
    """
    result = page if isinstance(page, dict) else {}
    return {
        "objects": [_chosen(item, _WHO) for item in _list(result, "objects")],
        "problems": [_chosen(item, _WHERE) for item in _list(result, "problems")],
        "failures": of_json(result.get("failures", [])),
    }


def of_checks(result: object) -> object:
    """Return results of checks, without the texts of checks that quote policies."""
    checks = _list(result, "checks") if isinstance(result, dict) else []
    quoting = [{**check, "said": HIDDEN} if check.get("name") in _QUOTING else check for check in checks]
    return of_json({**(result if isinstance(result, dict) else {}), "checks": quoting})


def _chosen(record: Mapping[str, object], names: tuple[str, ...]) -> Mapping[str, object]:
    return {name: of_json(record.get(name)) for name in names}


def _list(result: Mapping[str, object], name: str) -> list[dict[str, object]]:
    listed = result.get(name)
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _line(line: str) -> str:
    try:
        result = json.loads(line)
    except ValueError:
        return line
    if not isinstance(result, dict):
        return line
    if isinstance(problem := result.get("problem"), str):
        result["problem"] = ": ".join((*problem.split(": ", 2)[:2], HIDDEN))
    return json.dumps(of_json(result))
