"""Defaults that estimators, solvers and the command line share."""

#: Relative duality gap at which training stops. Smaller ones change nothing in the scores of unseen
#: data: see "A gap of 1 %" in docs/benchmarks.md.
TOL = 1e-2
#: The same for measures of a whole sample: where positive rows are rare the slack of F1 is near 1
#: even for good weights, and w = 0 may be within 1 % of the optimum. With every 20th positive row
#: of Reuters acquisitions (50 in 1,050 rows) and C = 0.1 the F1 of test rows is 0 at 1e-2, 0.890 at
#: 1e-3 and 0.880 at 1e-4; with C = 1 it is 0.891, 0.880 and 0.880.
MEASURE_TOL = 1e-3
#: Budget of what training keeps beside the data, in units of 2^20 bytes.
CACHE_MB = 1024.0
#: Seconds between two checkpoints of a training.
CHECKPOINT_EVERY = 60.0
#: Parameters about where a training is kept.
KEEPING = ("checkpoint", "checkpoint_every", "resume")
