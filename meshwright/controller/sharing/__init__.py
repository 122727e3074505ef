"""State that several servers share, if the setting `store` names a store of records.

- `store/`: the store itself, opened and followed; `migration/`: the move of a mesh into the store.
- `peers/`: the port at which the servers ask each other.
- `shared_store`: all of this for one server, opened before all other parts.
- `rejections/`: policy that proxies reject.
- `shared_tokens`: the join tokens.
- `gateway_record`: the names of the gateway Secrets that the mesh has written.
- `root_servers`, `issuer_servers`: the other servers in a change of the root, and of the issuer.
- `stream_balance`: the share of the proxies that this server has, among the servers.
- `isolated_server`: the end of streams at a server that alone cannot reach the store.
- `record_forms`: the form of records that all servers read, and the end of servers that do not.
- `record_pruning`: the removal of old certificates from the records of proxies, by the leader.
- `living_workloads`: the workloads of recorded proxies, whose certificates stay.
- `leader_reports`: the status that the leader writes about the proxies of all servers.
- `inputs`: the digest by which servers compare what they have read.
- `etcd_objects_file`: the last objects of etcd.
A server with the default setting imports none of these modules. The package never decides about the mesh: it
hands over what other servers have written.
"""
