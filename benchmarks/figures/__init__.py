"""Results of the programs as JSON, and the goals they are compared with.

The package never measures.
"""
