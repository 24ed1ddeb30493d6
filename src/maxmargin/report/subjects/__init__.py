"""What a report says about the outputs of each estimator: a file each, with one function.

describe(estimator, X, y, **of_examples) -> Subject

`maxmargin.registry` says which file is whose; `losses` is for all others.
"""
