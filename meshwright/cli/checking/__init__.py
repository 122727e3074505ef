"""`meshwright check` and `meshwright agent check`: observations, each with a time limit, and judgements.

It never repairs anything.
"""
