"""The checks of `meshwright check --kubernetes`.

It never writes to the cluster.
"""
