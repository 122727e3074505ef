"""Settings of the server: values, rules, reference page, schema, and reload.

Nothing is started here: the modules convert text to values and values to text.
"""
