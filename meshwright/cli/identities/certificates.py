"""Selection from the list of certificates: by serial, proxy or service identity."""

from collections.abc import Mapping

from certs.errors import RequestError
from certs.keys.serial import read_serial
from meshwright.cli.printing.responses import Found, records, required_records


def about(result: Found, wanted: str) -> Found | None:
    """Return the entries of `/api/v1/certificates` that match `wanted`, or None without a match.

    `wanted` is a serial in any usual notation, a proxy's common name or UUID, or a service identity
    (`namespace/serviceaccount`). For a proxy, the result has all certificates of the proxy, the entry as a
    participant, and the service certificate presented to other proxies.
    """
    serial = _serial(wanted)
    listed = required_records(result, "proxy_certificates")
    proxies = [record for record in listed if _is_of(record, wanted, serial)]
    names = {proxy.get("cn") for proxy in proxies}
    taking = [
        record
        for record in records(result, "participants")
        if record.get("cn") in names
        or _is_of(record, wanted, None)
        or (serial and _presented_serial(record) == serial)
    ]
    shown = {serial, *map(_presented_serial, taking)} - {None}
    services = [
        record
        for record in records(result, "service_certificates")
        if record.get("serial") in shown or record.get("identity") == wanted
    ]
    if not (proxies or taking or services):
        return None
    known = result.get("service_certificates") is not None
    return {
        "service_certificates": services if known else None,
        "participants": taking if known else None,
        "proxy_certificates": proxies,
        **{name: result[name] for name in ("authority",) if name in result},
    }


def _is_of(item: Found, wanted: str, serial: str | None) -> bool:
    name = str(item.get("cn"))
    return name == wanted or name.partition(".")[0] == wanted or bool(serial and item.get("serial") == serial)


def _presented_serial(participant: Found) -> object:
    """Return the serial of the service certificate presented by a proxy to others, or None if unknown."""
    held = participant.get("service_certificate")
    return held.get("serial") if isinstance(held, Mapping) else None


def _serial(wanted: str) -> str | None:
    try:
        return read_serial(wanted)
    except RequestError:
        return None
