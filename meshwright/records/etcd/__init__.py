"""Records in etcd: the contract of `meshwright.records` over a client of etcd.

- `store`: the store itself. A record's revision is its key's `mod_revision`.
- `layout`: the keys, all below `/meshwright/TRUST-DOMAIN/`.
- `presence`: the replicas that are there, each a key with a lease.
- `leadership`: a queue of candidates, each a key with a lease. The epoch is the revision of that key's
creation.

The package never knows the meaning of a content, and is imported only where a server is configured to use
etcd.
"""
