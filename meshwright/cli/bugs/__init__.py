"""Bug reports: the state of an installation for a maintainer, in one archive.

`contents` collects it, `redaction` removes secrets, and `archive` writes the file. The archive never contains
a secret.
"""
