"""What can go wrong between a server and its clients, by whose fault it is.

XdsError
├── WireError               the client: a request that breaks the protocol (xds.protocol.wire)
│   └── Excess                  the client: more than one certificate may have (xds.budget)
├── Refused                 the client: it may not have what it asks for (xds.hooks)
├── SnapshotError           ours: resources that cannot be served together (xds.protocol.resources.resources)
│   └── InconsistentError       ours: one refers to another that is missing (xds.protocol.resources.snapshot)
└── ListenError             this machine: an address that cannot be listened at (xds.server.listener)
"""


class XdsError(Exception):
    """Root of this package's errors."""
