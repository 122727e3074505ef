"""Records that several control planes of one mesh share, in a store that exists: Kubernetes or etcd.

One server keeps its state in a directory, and does not use this package. Several servers (replicas) keep the
state that cannot be computed from manifests in records: certificates of proxies, join tokens, the CA. A
record is one key with one content, and is written whole. For example, all certificates of one proxy are one
record, so that one comparison decides whether another one may be issued.

`meshwright.records.contract` is the interface of a store. `meshwright.records.memory` implements the contract
for tests. `meshwright.records.content` is the form of each content, and `meshwright.records.update` changes a
record with a pure function.

The package never knows the meaning of a content, and never keeps secrets: the caller seals them first.
"""
