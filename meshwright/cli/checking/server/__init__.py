"""The checks of `meshwright check`, with a running server and without one.

They never change the state directory, apart from a probe file that is written and removed.
"""
