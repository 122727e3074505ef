"""Client of etcd, version 3: connections to the members, single calls, watches, leases, feeds of changes.

- `access`: endpoints and credentials, with a sentence for each wrong one.
- `client`: one call at a time, for example to compare a key and replace it. Another member is asked after a
failure.
- `watch`: events from a revision on. A silent member is asked for progress, and given up without an answer.
- `feed`: all keys of a range, listed once and then watched. A later list is compared with the known keys, so
users see only differences.
- `lease`: keys with a time limit, which vanish with the process, and the time until which a lease is sure.

The package is a thin edge over grpc.aio. It never knows a mesh, and imports nothing else of this project
except the generated messages. The clients on the package index fall silent at a compacted revision, take an
expired lease for a live one, lack TLS, or block; hence a client of our own. Every fault of a store or network
is an `EtcdError` with one sentence for people. Read `client` next, then `feed`.
"""
