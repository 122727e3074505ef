"""The debug pages: pure functions from what is read to JSON, and the plain page of the same.

No key is ever among it.
"""
