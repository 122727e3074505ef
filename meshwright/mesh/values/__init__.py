"""Values that are made once and compared often: hashes, indexes, pictures, sets of networks.

It never knows what the values mean.
"""
