"""Client of etcd, version 3: connections to its members, single calls, watches, leases, and feeds of changes.

- `access`: endpoints and credentials, with a sentence for each wrong one.
- `client`: one call at a time, for example to compare a key and replace it. Another member is asked after a
failure.
- `watch`: events from a revision on. A watch never stays silent: its member is asked for progress.
- `feed`: all keys of a range, listed once and then watched. A later list is compared with the known keys, so
users see only differences.
- `lease`: keys that vanish with their process, and the time until which a lease is sure.

The package is a thin edge over grpc.aio. It never knows a mesh, and imports nothing else of this project
except the generated messages. It is an own client because those on the package index fall silent at a
compacted revision, do not notice that a lease is over, know no TLS, or block. Every fault of a store or
network is an `EtcdError` with one sentence for people. Read `client` next, then `feed`.
"""
