"""Go's text/template with some of Helm's functions: the subset that Meshwright's chart uses.

    tokens      the words of an action
    parsing     a template as a tree
    functions   the functions that a template can call
    evaluation  a tree and its values, as text

There are `if`, `else`, `else if`, `with`, `range`, `define`, `end`, variables (`:=`), pipelines, parentheses,
comments and trimming. The package never ignores the rest of Go's language: other constructs are errors with a
line number. A chart that needs one avoids it, or the construct is added here and compared with Helm.
"""
