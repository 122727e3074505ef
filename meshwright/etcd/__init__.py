"""Client of etcd, version 3: connections to the members, single calls, watches, leases, feeds of changes.

- `access`: endpoints and credentials, with a sentence for each wrong one.
- `client`: one call at a time, for example to compare a key and replace it. After a failure the client
  asks another member.
- `watch`: events from a revision on. The client asks a silent member for progress, and without an answer
  goes on to the next member.
- `feed`: all keys of a range, listed once and then watched. A later list is compared with the known keys, so
  users see only differences.
- `health`: the state of each member, for people.
- `lease`: keys with a time limit, which vanish with the process, and the time until which a lease is sure.

The package is a thin edge over grpc.aio. It never knows a mesh, and imports nothing else of this project
except the generated messages. The clients on the package index fall silent at a compacted revision, take an
expired lease for a live one, lack TLS, or block; hence a client of our own. Every fault of a store or network
is an `EtcdError` with one sentence for people. Read `client` next, then `feed`.
"""
