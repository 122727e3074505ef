"""Changes of request headers between an application and a server's rules."""

from typing import Final

SINGLE: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "access-control-request-headers",
        "access-control-request-method",
        "authorization",
        "cache-control",
        "content-encoding",
        "content-type",
        "expect",
        "grpc-timeout",
        "if-modified-since",
        "if-none-match",
        "origin",
        "pragma",
        "referer",
        "user-agent",
        "via",
        "x-client-trace-id",
        "x-envoy-decorator-operation",
        "x-envoy-external-address",
        "x-envoy-original-path",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-request-id",
    }
)
"""Headers kept by a sidecar as one value: repeated ones are joined by commas (RFC 9110, section 5.3)."""

UNSEEN: Final = frozenset(
    {
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "x-envoy-expected-rq-timeout-ms",
        "x-envoy-force-trace",
        "x-envoy-hedge-on-per-try-timeout",
        "x-envoy-internal",
        "x-envoy-ip-tags",
        "x-envoy-max-retries",
        "x-envoy-original-url",
        "x-envoy-retriable-header-names",
        "x-envoy-retriable-status-codes",
        "x-envoy-retry-grpc-on",
        "x-envoy-retry-on",
        "x-envoy-upstream-alt-stat-name",
        "x-envoy-upstream-rq-per-try-timeout-ms",
        "x-envoy-upstream-rq-timeout-alt-response",
        "x-envoy-upstream-rq-timeout-ms",
        "x-forwarded-client-cert",
    }
)
"""Headers that end at a sidecar: a rule sees another value than sent by the application."""

TE: Final = "te"
"""Header of which a sidecar only forwards the token `trailers`, as sent by gRPC clients."""

SET: Final = frozenset({"x-forwarded-proto", "x-request-id"})
"""Headers added by a sidecar if the application has not set them, so rules may see unsent ones."""
