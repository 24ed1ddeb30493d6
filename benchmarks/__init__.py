"""Timings and oracle counts next to published figures and to peers from the package index.

``python -m benchmarks list`` and ``python -m benchmarks run NAME ...``, in the repository's root.
Three kinds of small files make a benchmark, so that each can be added without touching the rest:

* ``datasets/``: arrays, settings, reference figures and limits of one data set;
* ``solvers.py`` and ``peers/``: contestants, which are timed;
* ``core/objective.py``: how good weights or tags are, whoever found them.
"""
