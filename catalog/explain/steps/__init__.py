"""The steps of an explanation, a module for each subject.

The modules only describe decisions; `catalog.oracle` makes them.
"""
