"""The errors of this package, by the side that caused them.

XdsError
 ├── WireError               the client: a request against the protocol (xds.protocol.wire)
 │   └── Excess                  the client: more than a limit allows one certificate (xds.budget)
 ├── StreamRefused           the client: not entitled to a configuration (xds.hooks)
 ├── AuthenticationUnavailable   the server: a part of it that knows the clients is away (xds.hooks)
 ├── SnapshotError           the caller: conflicting resources (xds.protocol.resources.resources)
 │   └── InconsistentError       the caller: a missing resource (xds.protocol.resources.snapshot)
 └── ListenError             the machine: an unavailable address (xds.server.listener)
"""


class XdsError(Exception):
    """Base class of this package's errors."""
