"""The errors of this package, by the side that caused them.

XdsError
 ├── WireError               the client: a request that breaks the protocol (xds.protocol.wire)
 │   └── Excess                  the client: more than a limit allows one certificate (xds.budget)
 ├── StreamRefused           the client: not entitled to a configuration (xds.hooks)
 ├── SnapshotError           the caller: resources that do not fit together (xds.protocol.resources.resources)
 │   └── InconsistentError       the caller: a missing resource (xds.protocol.resources.snapshot)
 └── ListenError             the machine: an address that cannot be listened on (xds.server.listener)
"""


class XdsError(Exception):
    """Base class of this package's errors."""
