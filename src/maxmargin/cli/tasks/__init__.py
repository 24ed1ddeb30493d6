"""What the commands do for each task of `maxmargin.registry`: a file each, with four functions.

plan(arguments) -> Plan                        checks the options of train, reads no data yet
understand(path, estimator, extra) -> Any      what a model file says of the files it is used on
predict(model, source, arguments) -> str       predictions for a file or a piece of one, as text
judge(model, arguments) -> Judgement           scores on a labelled file
"""
