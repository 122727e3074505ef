"""Go's text/template with some of Helm's functions: the subset for Meshwright's chart.

    tokens      the words of an action
    parsing     a template as a tree
    functions   the functions for templates
    evaluation  a tree and values in, text out

There are `if`, `else`, `else if`, `with`, `range`, `define`, `end`, variables (`:=`), pipelines, parentheses,
comments and trimming. The package never ignores the rest of Go's language: other constructs are errors with a
line number. To use another construct in the chart, add it here and compare the result with Helm.
"""
