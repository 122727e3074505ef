"""Edits of manifests by commands: the text changes only where a value changes.

`text` splits a file into documents, and keeps the text of unchanged ones. `scalars` writes numbers and
strings so that every YAML reader gets the same value as before. Lines with unchanged values are never
reformatted.
"""
