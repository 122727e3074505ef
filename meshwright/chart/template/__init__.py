"""Go's templates as far as our charts use them: text/template with some functions of Helm's.

    tokens      the words of an action
    parsing     a template as a tree
    functions   the functions that templates can call
    evaluation  the text of a tree with its values

Supported are `if`, `else`, `else if`, `with`, `range`, `define`, `end`, variables (`:=`), pipelines,
parentheses, comments and trimming. Everything else in Go's templates is an error with its line: a chart does
without it, or it is added here and compared with Helm.
"""
