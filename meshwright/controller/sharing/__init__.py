"""State that several servers share, if the setting `store` names a store of records.

- `store_thread`: the event loop of the store, in a thread of its own.
- `backends`: the store that the settings name; `listed_records`: a store that knows what it has listed.
- `etcd_connection`: the client of the etcd that the settings name; `etcd_objects_file`: its last objects.
- `gateway_record`: the names of the gateway Secrets that the mesh has written.
- `root_servers`, `issuer_servers`: the other servers in a change of the root, and of the issuer.
- `stream_balance`: the share of the proxies that this server has, among the servers.
- `record_pruning`: the removal of old certificates from the records of proxies, by the leader.
- `unmoved_state`: the state directory of an earlier server, which must be moved into an empty store first;
  `unmoved_claim`: its volume claim in a cluster.
- `shared_tokens`: the join tokens.
- `domains`: what each part of the program knows about losses of its records.
- `followed_file`, `first_answer`, `waiting_probes`: a start while the store is away, or waits for it.
- `shared_store`: the store of one server, opened before all other parts.
A server with the default setting imports none of these modules. The package never decides about the mesh: it
hands over what other servers have written.
"""
