"""Commands: other programs, started with a time limit, and ended with all their children.

It never knows what a program does, and never runs a long-lived one.
"""
