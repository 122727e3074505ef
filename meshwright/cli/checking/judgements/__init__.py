"""Judgements about a server, a machine or a cluster: pure functions from observations to a `check.Check`.

`server` and `machine` judge running programs, `fitness` judges the place of a program that is to start. It
never makes an observation: the other packages of `meshwright.cli.checking` do.
"""
