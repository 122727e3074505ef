"""The steps of an explanation, a module for each subject.

The modules describe decisions and never make one; `catalog.oracle` decides.
"""
