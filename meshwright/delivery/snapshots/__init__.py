"""Snapshots of groups of proxies: from policy to pieces, resources and a snapshot, at the cost of a change.

It never decides when to compute: `meshwright.delivery.loop` does.
"""
