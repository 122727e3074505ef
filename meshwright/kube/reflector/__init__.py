"""All objects of one kind, listed and then watched: the reflector, its cache and its pace.

It never knows what an object means.
"""
