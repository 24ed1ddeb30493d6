"""Defaults that estimators, solvers and the command line share."""

#: Relative duality gap at which training stops. Smaller ones change nothing in the scores of unseen
#: data: see the table in benchmarks/README.md.
TOL = 1e-2
