"""What a benchmark runs: control planes, load generators and sidecars, their keys, and what each costs.

It never judges a figure.
"""
