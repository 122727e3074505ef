"""Resources, sets of them and snapshots, with what they refer to.

It never knows what a resource configures.
"""
