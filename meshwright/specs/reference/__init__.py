"""The reference of manifests: a page for people and JSON Schemas for editors, generated from the readers.

The readers read examples through a cursor that records their calls, so that type, range, choices, default and
whether further fields are allowed are the readers' own. Only the meaning of a field is written here, and its
form where a reader checks text by hand. A server never uses this package to read a mesh.
"""
