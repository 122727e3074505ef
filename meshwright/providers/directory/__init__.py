"""A directory of manifests as a source: the content of each file, and the last good form of each object.

`watch` receives the system's events, and `rounds` looks at every file periodically in case events were lost.
`files` lists and reads files, and never follows a symlink out of the directory. `settlement` delays changes
that look like a half-finished edit, and `source` combines all of this.
"""
