"""Sources: where objects, workloads and endpoints come from, kept alive and merged.

All input and output of the input side is here; what a manifest means is read in `specs/`. A source keeps
its last good answer and shows its age. It will never decide policy, know a proxy, or empty an answer
because of an error.
"""
