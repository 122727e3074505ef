"""The meaning of each field, kind by kind: one table for each origin of kinds.

It never repeats a type or a default: the readers have them.
"""
