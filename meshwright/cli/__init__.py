"""The command line: it reads arguments and prints results.

It never does work that a program without a terminal could need: that is in the packages below.
"""
