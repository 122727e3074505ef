"""A directory of manifests as a source: the content of each file, and the last good form of each object.

It never follows a symlink out of the directory.
"""
