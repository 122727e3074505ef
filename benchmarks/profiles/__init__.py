"""Profiles of a running process, taken from inside: its time by function and its memory by type.

It imports nothing of the program, because it looks into whichever checkout runs.
"""
