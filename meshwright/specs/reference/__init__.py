"""Generator for the reference of manifests: docs/policy/reference.md, JSON Schemas for editors, and CRDs.

`probing` reads examples with the real readers, through a recording cursor (`recording`). Types, ranges,
choices, defaults, and whether further fields are allowed therefore come from the readers themselves. Only the
meaning of a field (`meanings`), and the form of texts checked by a reader itself (`meaning`), are written
here. `page`, `schema` and `crds` turn the result (`shapes`) into documents.

The server never uses this package to read a mesh.
"""
