"""Meanings of all fields, kind by kind, with one module for each origin of kinds.

Types and defaults are never repeated here, because the readers have them.
"""
