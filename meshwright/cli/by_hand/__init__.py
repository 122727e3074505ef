"""Edits of manifests by commands: the text changes only where a value changes.

It never reformats a line that keeps its value.
"""
