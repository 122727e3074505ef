"""Shared values of several kinds: durations, quantities, references and protocols.

Functions here never read a whole manifest.
"""
