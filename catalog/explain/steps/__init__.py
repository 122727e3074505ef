"""The steps of an explanation, one module for each subject.

It never decides: `catalog.oracle` does.
"""
