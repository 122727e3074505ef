"""The oracle: the decision for one request, written from the text of the SMI specifications.

Tests compare the decision with the policy that proxies enforce. So the oracle never shares code with
`catalog.policy`.
"""
