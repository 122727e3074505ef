"""The shared state of a mesh as one value: backup, restore, and moves between a directory and a shared store.

- `mesh_state`: the value, and the form inside a sealed file.
- `state_file`: the sealed file of `meshwright state export`.
- `directory_state`: the value in a state directory.
- `mesh_store`: the value in a store of records. Continue with `store_state` (reads), `store_writer`
  and `joined_records` (writes).
The package never decides about certificates, and never has the state of a single server, for example the
certificates of its listeners. A server with the default settings imports none of these modules.
"""
