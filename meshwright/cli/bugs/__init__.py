"""Bug reports: the state of an installation for a maintainer, in one archive.

`contents` collects the files, `redaction` removes secrets, and `archive` writes the archive, which never
contains a secret.
"""
