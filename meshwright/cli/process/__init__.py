"""A command as a process: standard streams, signals, environment and exit status.

It never knows what a command does.
"""
