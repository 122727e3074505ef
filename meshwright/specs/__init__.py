"""Readers of manifests (SMI, Open Service Mesh, Kubernetes, our own kinds), which return values of the mesh.

`reader` finds the reader of a document in `kinds`, and returns mesh values or problems; a bad manifest never
raises an exception. `fields` is the cursor with which all readers access a mapping, and `notes` collects
their problems. `osm`, `smi`, `core`, `own` and `policy` have the readers of each origin, and `reference`
generates docs/policy/reference.md and JSON Schemas from them.

Readers are pure. They never read files, know YAML, keep state between two manifests, or decide the effect of
a policy.
"""
