"""Judgements about the environment of a program: the clock, the machine, its ports, and the storage.

The package never asks: its functions get what others have found.
"""
