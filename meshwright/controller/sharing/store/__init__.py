"""The store of records that several servers share: opened, followed, and remembered for the next start.

- `backends`: the store that the settings name, and `etcd_connection` its client of etcd.
- `store_thread`: the event loop of the store, in a thread of its own.
- `server_presence`: the announcement of this server, and its leadership; `store_news`: changes by others,
  for the event loop of the server (`server_loop`).
- `listed_records`: a store that knows what it has listed.
- `domains`: what each part of the program knows about losses of its records.
- `followed_file`, `first_answer`, `waiting_probes`: a start while the store is away, or waits for the store.
- `open_store`: the store for one command.
The package never knows the meaning of a record.
"""
