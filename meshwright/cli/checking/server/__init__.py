"""The checks of `meshwright check`, with a server that runs and without one.

It never changes the state directory.
"""
