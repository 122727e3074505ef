"""The checks of `meshwright check`, with a running server and without one.

They never change the state directory, except for a probe file, which is written and removed.
"""
