"""Values that several kinds share: durations, quantities, references and protocols.

Functions here never read a whole manifest.
"""
