"""Store of everything known about the mesh: the view, and the edits that change it.

`view` has one table per kind of object. The modules `smi`, `osm` and `own_policies` declare the tables and
indexes of policies, `inventory` those of workloads and endpoints, and `mesh_wide` the settings of the
MeshConfig. A view only stores and finds; all conclusions are in `catalog.relations` and `catalog.policy`.
Read next: `view`, then `edits`.

It never derives anything from them: the packages above it do.
"""
