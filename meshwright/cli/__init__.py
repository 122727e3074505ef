"""The command line: reading arguments, printing answers.

It will never do what another program could want to do without a terminal: that is in the packages below.
"""
