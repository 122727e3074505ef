"""Certificates for a terminal: tables of all certificates, and every detail of a few."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.text import Text

from meshwright.cli.printing.responses import Found, records, required_records, texts
from meshwright.cli.printing.table import Columns, columns, styled

_STATES: Final = {"claimed": "green", "issued": "yellow", "revoked": "red"}
_FIELDS: Final = (
    ("issued", "issued_at"),
    ("valid until", "not_after"),
    ("to be claimed by", "claim_by"),
    ("claimed", "claimed_at"),
    ("claimed from", "claimed_from"),
    ("first ready", "first_ready_at"),
    ("last seen", "last_seen"),
    ("revoked", "revoked_at"),
    ("revoked because", "revoked_why"),
    ("joined by", "joined_by"),
)


def certificates_tables(result: Found) -> tuple[Columns, ...]:
    """Return the tables of `/api/v1/certificates`: service certificates, and proxy certificates.

    Without a server, there is no table of service certificates, and participation is unknown. Proxies without
    a certificate have their own table.
    """
    services = columns("IDENTITY", "SERIAL", "VALID UNTIL", "NAMES")
    for record in records(result, "service_certificates"):
        names = record.get("dns_names")
        shown = " ".join(map(str, names)) if isinstance(names, Sequence) else ""
        services.add_row(str(record["identity"]), str(record["serial"]), str(record["not_after"]), shown)
    lacks = {
        record.get("cn"): ", ".join(texts(record, "lacks")) for record in records(result, "participants")
    }
    proxies = columns("PROXY", "SERIAL", "STATE", "VALID UNTIL", "LAST SEEN", *(["LACKS"] if lacks else []))
    for record in required_records(result, "proxy_certificates"):
        state = str(record["state"])
        row: list[str | Text] = [
            str(record["cn"]),
            str(record["serial"]),
            styled(state, _STATES.get(state, "")),
        ]
        row += [str(record["not_after"]), str(record.get("last_seen") or "never")]
        proxies.add_row(*row, *([styled(lacks.get(record["cn"], ""), "yellow")] if lacks else []))
    if result.get("service_certificates") is None:
        return (proxies,)
    issued = {record.get("cn") for record in records(result, "proxy_certificates")}
    without = columns("PROXY WITHOUT CERTIFICATE", "LACKS")
    for name in (name for name in lacks if name not in issued):
        without.add_row(str(name), styled(lacks[name], "yellow"))
    return (services, proxies, without) if without.row_count else (services, proxies)


def candidates_tables(result: Found) -> tuple[Columns, ...]:
    """Return the table of the certificates presented by proxies during the rebuilding of a ledger."""
    made = columns("PROXY", "SERIAL", "FROM", "SHOWN", "VALID SINCE", "VALID UNTIL", "WORKLOAD", "CONFIRMED")
    for record in required_records(result, "candidates"):
        moments = (str(record.get(name)) for name in ("shown_at", "not_before", "not_after"))
        made.add_row(
            *(str(record.get(name) or "-") for name in ("cn", "serial", "from")),
            *moments,
            str(record.get("workload") or "-"),
            "yes" if record.get("confirmed") else "no",
        )
    return (made,)


def certificates_lines(result: Found) -> Iterator[str]:
    """Yield the lines about a few certificates, and whether their proxies take part in the mesh."""
    for record in records(result, "proxy_certificates"):
        yield f"proxy certificate {record.get('serial')} of {record.get('cn')}: {record.get('state')}"
        yield from (f"  {words} {record[name]}" for words, name in _FIELDS if record.get(name))
        if isinstance(term := record.get("term_seconds"), int):
            yield f"  each renewal is valid for {_life(term)}, as requested"
        yield from _signed_by(record, result.get("authority"))
        if not record.get("in_force"):
            yield "  not in force: the server refuses this certificate"
    for record in records(result, "participants"):
        lacks = ", ".join(texts(record, "lacks"))
        takes = f"not part of the mesh: {lacks}" if lacks else "part of the mesh"
        yield f"proxy {record.get('cn')}: {takes}"
        held = record.get("service_certificate")
        if isinstance(held, Mapping):
            yield f"  presents service certificate {held.get('serial')}, valid until {held.get('not_after')}"
    for record in records(result, "service_certificates"):
        yield f"service certificate {record.get('serial')} of {record.get('identity')}"
        yield f"  {record.get('uri')}"
        yield f"  valid from {record.get('not_before')} until {record.get('not_after')}"
        yield from (f"  {name}" for name in texts(record, "dns_names"))


def _signed_by(item: Found, authority: object) -> Iterator[str]:
    """Yield a line about the signing CA of a proxy certificate, if the ledger knows the CA."""
    if not isinstance(authority, Mapping) or not (signer := item.get("signer")):
        return
    if signer != authority.get("signer"):
        yield f"  signed by another CA than now: {str(signer)[:16]}"
        return
    whose = "somebody else's CA" if authority.get("kind") == "files" else "the server's own CA"
    yield f"  signed by {whose} in {authority.get('place')}, valid until {authority.get('not_after')}"


def _life(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    return f"{seconds} seconds" if rest else f"{days} day{'s' if days != 1 else ''}"
