"""Problems with objects: their shape, codes, bounds and suggestions.

It never finds a problem: readers and lint do.
"""
