"""What can be written in a manifest: a page for readers and JSON Schemas for editors, both from the readers.

The readers themselves are asked: they read examples through a cursor that notes what is asked of it, so type,
range, choices, default and whether anything else may stand there are theirs. Only what a field means is
written down here, beside its form where a reader checks text by hand. Nothing here is used to read a mesh.
"""
