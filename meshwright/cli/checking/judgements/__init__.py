"""Judgements about a server, a machine or a cluster: pure functions from observations to a `check.Check`.

`server` and `machine` judge running programs, and `fitness` judges a machine before the first start.
`installation` and `cluster` judge a cluster. The package never makes an observation: the other packages of
`meshwright.cli.checking` do.
"""
