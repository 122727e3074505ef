"""Records in etcd: the contract of `meshwright.records` over a client of etcd.

- `store`: the store. The revision of a record is the `mod_revision` of the key.
- `layout`: the keys, all below `/meshwright/TRUST-DOMAIN/`.
- `presence`: the present replicas, each a key with a lease.
- `leadership`: a queue of candidates, each a key with a lease. The epoch is the `create_revision` of the key.

The package never knows the meaning of a content, and is imported only where a server is configured to use
etcd.
"""
