"""The graph of calls: allowed by policy, and counted by proxies, with the layout of its picture.

Pure functions of a view and of statistics. It never reads anything by itself, and never knows HTML.
"""
