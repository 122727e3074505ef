"""Settings of the server: their values, rules, reference page and schema, and reading them again.

It never starts anything: the modules turn text into values and values into text.
"""
