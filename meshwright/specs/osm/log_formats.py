"""Access log formats: the allowed operators of Envoy.

One unknown operator makes Envoy reject the whole listener, so only operators and arguments supported by all
tested versions of Envoy are allowed. Operators that could show secrets are excluded: a proxy's environment
and files, and keys of TLS sessions.

https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage
"""

import json
import re
from typing import Final

from meshwright.mesh.policies.telemetry import JsonFormat, LogFormat, TextFormat
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.values.headers import NAME

_ALONE: Final = """
ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID
CONNECTION_TERMINATION_DETAILS CUSTOM_FLAGS DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT DOWNSTREAM_DIRECT_LOCAL_ADDRESS
DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_LOCAL_PORT
DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT
DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_HEADER_BYTES_RECEIVED
DOWNSTREAM_HEADER_BYTES_SENT DOWNSTREAM_LOCAL_ADDRESS DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT
DOWNSTREAM_LOCAL_DNS_SAN DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_IP_SAN
DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_PORT DOWNSTREAM_LOCAL_SUBJECT DOWNSTREAM_LOCAL_URI_SAN
DOWNSTREAM_PEER_CERT_V_END DOWNSTREAM_PEER_CERT_V_START DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1
DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256 DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_DNS_SAN
DOWNSTREAM_PEER_EMAIL_SAN DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_FINGERPRINT_256
DOWNSTREAM_PEER_IP_SAN DOWNSTREAM_PEER_ISSUER DOWNSTREAM_PEER_OTHERNAME_SAN DOWNSTREAM_PEER_SERIAL
DOWNSTREAM_PEER_SUBJECT DOWNSTREAM_PEER_URI_SAN DOWNSTREAM_REMOTE_ADDRESS
DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT DOWNSTREAM_REMOTE_PORT DOWNSTREAM_TLS_CIPHER
DOWNSTREAM_TLS_VERSION DOWNSTREAM_TRANSPORT_FAILURE_REASON DOWNSTREAM_WIRE_BYTES_RECEIVED
DOWNSTREAM_WIRE_BYTES_SENT DURATION EMIT_TIME EMIT_TIME_LOCAL FILTER_CHAIN_NAME GRPC_STATUS
GRPC_STATUS_NUMBER HOSTNAME PACKETS_RETRANSMITTED PATH PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION
REQUEST_HEADERS_BYTES REQUEST_TX_DURATION RESPONSE_CODE RESPONSE_CODE_DETAILS RESPONSE_DURATION
RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION
ROUNDTRIP_DURATION ROUTE_NAME START_TIME START_TIME_LOCAL STREAM_ID TLS_JA3_FINGERPRINT
TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID UPSTREAM_CLUSTER UPSTREAM_CLUSTER_RAW UPSTREAM_CONNECTION_ID
UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED
UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT UPSTREAM_HEADER_BYTES_RECEIVED UPSTREAM_HEADER_BYTES_SENT
UPSTREAM_HOST UPSTREAM_HOST_NAME UPSTREAM_HOST_NAME_WITHOUT_PORT UPSTREAM_LOCAL_ADDRESS
UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT UPSTREAM_LOCAL_DNS_SAN UPSTREAM_LOCAL_IP_SAN UPSTREAM_LOCAL_PORT
UPSTREAM_LOCAL_URI_SAN UPSTREAM_PEER_CERT_V_END UPSTREAM_PEER_CERT_V_START UPSTREAM_PEER_DNS_SAN
UPSTREAM_PEER_IP_SAN UPSTREAM_PEER_ISSUER UPSTREAM_PEER_SUBJECT UPSTREAM_PEER_URI_SAN UPSTREAM_PROTOCOL
UPSTREAM_REMOTE_ADDRESS UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT UPSTREAM_REMOTE_PORT
UPSTREAM_REQUEST_ATTEMPT_COUNT UPSTREAM_TLS_CIPHER UPSTREAM_TLS_VERSION
UPSTREAM_TRANSPORT_FAILURE_REASON UPSTREAM_WIRE_BYTES_RECEIVED UPSTREAM_WIRE_BYTES_SENT
VIRTUAL_CLUSTER_NAME
"""
OPERATORS: Final = frozenset(_ALONE.split())
"""Operators without arguments, for example `%DURATION%`."""

_HEADER: Final = rf":?{NAME}"
_TIME: Final = r"(?:%[aAbBdDeFHIjmMpRsSTyYzZ]|%[1-9]f|[ ,./:TZ+-])*"
_FIELD: Final = r"[A-Za-z0-9_./-]+"
_POINT: Final = r"(?:DS|US)_(?:RX|TX)_(?:BEG|END)"
_WITH: Final = {
    "REQ": rf"{_HEADER}(?:\?{_HEADER})?",
    "RESP": rf"{_HEADER}(?:\?{_HEADER})?",
    "TRAILER": rf"{_HEADER}(?:\?{_HEADER})?",
    "QUERY_PARAM": r"[A-Za-z0-9_.~-]+",
    "DYNAMIC_METADATA": rf"{_FIELD}(?::{_FIELD})*",
    "METADATA": rf"(?:DYNAMIC|CLUSTER|ROUTE|UPSTREAM_HOST|LISTENER|VIRTUAL_HOST):{_FIELD}(?::{_FIELD})*",
    "FILTER_STATE": rf"{_FIELD}(?::(?:PLAIN|TYPED))?",
    "RESPONSE_CODE_DETAILS": "ALLOW_WHITESPACES",
    "START_TIME": _TIME,
    "EMIT_TIME": _TIME,
    "PATH": r"(?:WQ|NQ)(?::(?:ORIG|PATH|ORIG_OR_PATH))?",
    "GRPC_STATUS": "CAMEL_STRING|SNAKE_STRING|NUMBER",
    "COMMON_DURATION": rf"{_POINT}:{_POINT}:(?:ms|us|ns)",
}
"""Operators with an argument, and the pattern of the argument."""

_CUT: Final = frozenset({"REQ", "RESP", "TRAILER", "QUERY_PARAM"})
"""Operators with an optional maximum length: `%REQ(user-agent):40%`."""

_OPERATOR: Final = re.compile(
    "|".join(
        (
            *sorted(OPERATORS, reverse=True),
            *(rf"{word}\((?:{form})\)(?::[0-9]{{1,4}})?" for word, form in _WITH.items() if word in _CUT),
            *(rf"{word}\((?:{form})\)" for word, form in _WITH.items() if word not in _CUT),
        )
    )
)
_PIECE: Final = re.compile(rf"%%|%(?:{_OPERATOR.pattern})%|[^%]+")
_WITHOUT_QUERY: Final = re.compile(r"%REQ_WITHOUT_QUERY\((?:X-ENVOY-ORIGINAL-PATH\?)?:PATH\)%", re.IGNORECASE)
"""Path operator of an extension that Open Service Mesh enables; replaced by Envoy's built-in operator."""

_BAD: Final = re.compile(r"%(?:[A-Za-z_0-9]+)?(?:\([^)]*\))?(?::[^%]*)?%?")
LONGEST: Final = 8192
FORMAT_RULE: Final = (
    "must be text with operators of Envoy, such as %REQ(:method)% or %RESPONSE_CODE% (write %% "
    "for a percent sign), or a JSON object with such texts as values"
)


def fault(text: str) -> str | None:
    """Return the first operator of an access log format that a proxy would reject, or None."""
    end = 0
    while end < len(text):
        match = _PIECE.match(text, end)
        if match is None:
            bad = _BAD.match(text, end)
            return bad.group()[:80] if bad else text[end : end + 80]
        end = match.end()
    return None


def log_format(fields: Fields, name: str) -> LogFormat | None:
    """Return an access log format: JSON if the text is a JSON object, else text; None if absent."""
    message = fields.text(name)
    if message is None:
        return None
    # Replaced instead of refused, so that OSM's formats work unchanged.
    text = _WITHOUT_QUERY.sub("%PATH(NQ:ORIG_OR_PATH)%", message)
    result = _json(text)
    bad = [item for part in _texts(result if result is not None else text) if (item := fault(part))]
    if not text or len(text) > LONGEST:
        fields.wrong(name, f"{FORMAT_RULE}; at most {LONGEST} characters")
    elif bad:
        expected = (
            f"{bad[0]} is not an operator that all supported versions of Envoy accept; the "
            f"format {FORMAT_RULE}"
        )
        fields.notes.refuse(Code.WRONG_VALUE, fields.at(name), expected, bad[0])
    if result is None:
        return TextFormat(text)
    return JsonFormat(json.dumps(result, sort_keys=True, ensure_ascii=False))


def _json(text: str) -> dict[str, object] | None:
    try:
        # The text may have thousands of open brackets, because its length is checked later.
        result = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) else None


def _texts(result: object) -> list[str]:
    match result:
        case str():
            return [result]
        case dict():
            return [text for item in result.values() for text in _texts(item)]
        case list():
            return [text for item in result for text in _texts(item)]
        case _:
            return []
