"""What the commands do for each task of `maxmargin.registry`: a file each, with five functions.

plan(arguments) -> Plan                        checks the options of train, reads no data yet
load_schema(path, estimator, extra) -> Any      what a model file says of the files it is used on
predict(model, source, arguments) -> str       predictions for a file or a piece of one, as text
evaluate(model, arguments) -> Evaluation       scores on a labelled file
examples(model, arguments) -> Examples         a labelled file as the estimator takes it

A `Evaluation` with a `Tally` (its scores as ratios of sums over sentences, examples, ...) gets
intervals and paired tests in ``evaluate``, and training can be watched by it (``train --dev``).
There may be more functions, each of which has a default:

count(estimator, examples) -> Tally            scores of examples; else those of its report
"""
