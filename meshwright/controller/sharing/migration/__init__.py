"""Move of a mesh from the state directory of a single server into a store that several servers share.

- `move`: the move itself, at the start of a server or by command; `own_mesh` reads and writes the directory.
- `unmoved_state`: the wait of a new server until the state of an earlier one is moved.
- `unmoved_claim`: the volume claim of an earlier server in a cluster.
The package never changes the mesh: what was true in the directory is true in the store.
"""
