"""Go's templates, as far as charts of ours use them: text/template with some functions of Helm's.

    tokens      an action's words
    parsing     a template as a tree
    functions   what can be called
    evaluating  a tree and what it is told, as text

There are `if`, `else`, `else if`, `with`, `range`, `define`, `end`, variables (`:=`), pipelines, parentheses,
comments and trimming. What else Go's have is an error here, with its line: a chart that needs it either does
without, or has it added here and compared with Helm.
"""
