"""An xDS v3 server library: resources in snapshots, streams as state machines without I/O, gRPC at the edge.

The library serves any resources to any xDS clients and can be used without the rest of the project. A caller
puts a `Snapshot` for each group of nodes into a `SnapshotCache` and starts an `AdsServer`. Streams then push
each change, in both variants of the protocol (state of the world and incremental).

The protocol itself (`xds.protocol`) is pure: requests and snapshots go in, responses come out. Therefore
every rule of docs/understand/xds-rules.md is tested without a socket. Only `xds.server` and `xds.connections`
use asyncio and gRPC.

The library never knows a mesh, a policy or an issuer. An `Authenticator` (`xds.hooks`) identifies the node of
a client, and a snapshot decides the configuration of the node. Read `xds.protocol.stream` next.
"""
