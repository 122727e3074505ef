"""Meanings of the fields of a ClientTrafficPolicy."""

from collections.abc import Mapping
from typing import Final

from meshwright.specs.reference.meaning import DURATION, Form, Meaning, Meanings, under
from meshwright.specs.reference.meanings.gateway import NAME, SECTION
from meshwright.specs.reference.meanings.osm_policy import RATES, REQUESTS
from meshwright.specs.values.sizes import SIZE_TEXT

SIZE: Final = Form(
    "size in bytes, for example `64Ki`",
    {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": f"^{SIZE_TEXT}$"}]},
)

_NO_SERVICE_OF_ROUTES: Final = "httpRoutes[].rateLimit.global"

_OF_LISTENERS: Final[Mapping[str, Meaning]] = {
    "rateLimit": Meaning("Rates of the clients of a listener."),
    "rateLimit.local": Meaning("Limits that each proxy of the gateway counts by itself."),
    "rateLimit.local.tcp": Meaning("Connections of a port.", "no limit"),
    "rateLimit.local.http": Meaning("Requests of all clients of a listener.", "no limit"),
    "rateLimit.local.perClient": Meaning("Requests of each client address at a listener.", "no limit"),
    **under("rateLimit.local.perClient", REQUESTS),
    "rateLimit.global": Meaning("Limits that a rate limit service counts for all proxies together."),
    "rateLimit.global.tcp": Meaning("Connections of a listener.", "no limit"),
    "rateLimit.global.http": Meaning("Requests of a listener.", "no limit"),
    "httpRoutes[].rateLimit": Meaning("The rate limits of the route."),
    "httpRoutes[].rateLimit.local": Meaning("A limit that each proxy of the gateway counts by itself."),
}

CLIENT_TRAFFIC_POLICY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several policies for one Gateway or one listener, the oldest is in force."
    ),
    "spec": Meaning("The Gateways, and the settings for their clients."),
    "spec.targetRefs": Meaning("The Gateways or listeners, each only once, at most 16."),
    "spec.targetRefs[].group": Meaning("The API group of the kind."),
    "spec.targetRefs[].kind": Meaning("The kind."),
    "spec.targetRefs[].name": Meaning("The name of the Gateway, in the object's namespace.", form=NAME),
    "spec.targetRefs[].sectionName": Meaning(
        "The name of a listener of the Gateway. A policy with a listener precedes one for the whole Gateway.",
        "all listeners, those of ListenerSets too",
        SECTION,
    ),
    "spec.connections": Meaning("Limits of connections."),
    "spec.connections.max": Meaning(
        "The maximum simultaneous connections of a listener at each proxy; further ones are closed.",
        "the proxy's own limit of 50000 for all listeners together",
    ),
    "spec.connections.bufferSize": Meaning(
        "The bytes that are kept for a connection whose other end reads slowly, from 1Ki to 1Gi; "
        "all listeners of a port have the same.",
        "`32Ki`",
        raw=SIZE,
    ),
    "spec.headers": Meaning("Limits of a request's headers; a request beyond them is answered with 431."),
    "spec.headers.maxSize": Meaning(
        "The maximum total size, from 1Ki to 8Mi.", "the mesh's setting, `64Ki`", raw=SIZE
    ),
    "spec.headers.maxCount": Meaning("The maximum number.", "the mesh's setting, `1000`"),
    "spec.timeouts": Meaning("Times for clients; `0s` stands for no limit."),
    "spec.timeouts.idle": Meaning(
        "The time after which a connection without a request, or a TCP connection without a byte, is closed.",
        "`1h`; of TCP the mesh's setting",
        DURATION,
    ),
    "spec.timeouts.requestHeaders": Meaning(
        "The time until all headers of a request have arrived.", "`10s`", DURATION
    ),
    "spec.timeouts.request": Meaning(
        "The time until the whole request has arrived; it ends uploads that take longer.",
        "`0s`",
        DURATION,
    ),
    "spec.timeouts.streamIdle": Meaning(
        "The time after which a request or a response without a byte is ended.", "`5m`", DURATION
    ),
    "spec.timeouts.handshake": Meaning(
        "The time for the handshake of TLS, from 100ms to 1h, where the gateway ends TLS.", "`10s`", DURATION
    ),
    "spec.http2": Meaning("Limits of HTTP/2."),
    "spec.http2.maxConcurrentStreams": Meaning("The maximum simultaneous requests of a connection.", "`100`"),
    "spec.http2.initialStreamWindowSize": Meaning(
        "The bytes of a request that may be on their way, from 64Ki to 1Gi.", "`64Ki`", raw=SIZE
    ),
    "spec.http2.initialConnectionWindowSize": Meaning(
        "The bytes of all requests of a connection that may be on their way, from 64Ki to 1Gi.",
        "`1Mi`",
        raw=SIZE,
    ),
    "spec.path": Meaning("The form of paths before a route is chosen; dot segments are always resolved."),
    "spec.path.mergeSlashes": Meaning("Whether several slashes in a row are read as one."),
    "spec.path.escapedSlashes": Meaning(
        "The treatment of an escaped slash or backslash in a path: `Reject` answers 400, `Keep` leaves the "
        "path as written, `UnescapeAndRedirect` sends the client to the unescaped path, and "
        "`UnescapeAndForward` goes on with the unescaped path."
    ),
    "spec.clientAddress": Meaning("The source of the client's address."),
    "spec.clientAddress.trustedHops": Meaning(
        "The number of proxies in front of the gateway, each of which appends the address of its own client "
        "to X-Forwarded-For. With 0 the address is that of the connection."
    ),
    "spec.clientAddress.proxyProtocol": Meaning(
        "Whether each connection must begin with a header of the PROXY protocol, version 1 or 2; "
        "all listeners of a port have the same."
    ),
    **under(
        "spec",
        {
            place: _OF_LISTENERS.get(place, meaning)
            for place, meaning in {**RATES, **_OF_LISTENERS}.items()
            if not place.startswith(_NO_SERVICE_OF_ROUTES)
        },
    ),
}
