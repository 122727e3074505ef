"""The checks of `meshwright check`, with a running server and without one.

They change the state directory only by a probe file, which is written and removed.
"""
