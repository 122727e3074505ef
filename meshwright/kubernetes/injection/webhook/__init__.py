"""Injection as an API server meets it: the registration, reviews and their answers.

It never decides: `meshwright.kubernetes.injection.decision` does.
"""
