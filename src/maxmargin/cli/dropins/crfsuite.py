"""What CRFsuite's commands do."""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...formats import CrfsuiteData, read_crfsuite
from ...persistence import load_model
from ..console import (
    DONE,
    ERROR,
    NO_MODEL,
    Signals,
    UsageError,
    announcing_interrupts,
    echo,
    echo_result,
    standard_output,
)
from ..files import check_model_output, is_standard, open_input, save_somewhere
from ..training import describe, echo_misplaced, exit_code, spent

__all__ = ["dump", "learn", "tag"]

SOLVERS = {"ap": "perceptron", "pa": "mira"}
#: Parameters that CRFsuite's algorithms have, and that mean nothing here.
OTHERS = (
    *("feature.possible_states", "feature.possible_transitions", "c1", "num_memories", "epsilon"),
    *("period", "delta", "linesearch", "max_linesearch", "type", "c", "error_sensitive"),
    *("averaging", "variance", "gamma", "calibration.eta", "calibration.rate"),
    *("calibration.samples", "calibration.candidates", "calibration.max_trials"),
)


# ----- learn ------------------------------------------------------------------------------------


def learn(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train a tagger, save it, and test it on what was held out."""
    parameters = _parameters(arguments)
    if arguments.model is not None:
        check_model_output(arguments.model, arguments.data, force=False, option="-m")
    groups = [read_crfsuite(open_input(path)) for path in arguments.data]
    training, held_out = _split(arguments, groups)
    if not arguments.quiet:
        echo_result(f"{len(training.y)} instances, {training.n_tokens} items")
    from ...estimators.sequences.sequence import SequenceTagger
    from ...features import FeatureDictionary

    estimator = SequenceTagger(
        features=FeatureDictionary(min_count=parameters.pop("min_count")),
        random_state=0,
        verbose=0 if arguments.quiet else 1,
        training={"callbacks": (signals.check,), "on_interrupt": "return"},
        probability=arguments.probability,
        **parameters,
    )
    with announcing_interrupts(NO_MODEL):
        estimator.fit(training.X, training.y)
    estimator.set_params(training=None, verbose=0)
    if not arguments.quiet:
        echo_result(f"{estimator.n_features_in_} attributes, {len(estimator.classes_)} labels")
        echo_result(f"{describe(estimator.result_)}, {spent()}")
    code = _save(arguments, signals, estimator)
    if held_out is not None and signals.received is None:
        predicted = [list(map(str, ys)) for ys in estimator.predict(held_out.X)]
        for line in _performance(held_out.y, predicted, estimator.classes_.tolist()):
            echo_result(line)
    return code


def _save(arguments: argparse.Namespace, signals: Signals, estimator: Any) -> int:
    """Save the model, if it has a name; returns the exit code."""
    error = None
    if arguments.model is not None:
        with signals.saving():
            extra = {"task": "tag", "tool": "crfsuite"}
            path, error = save_somewhere(estimator, extra, arguments.model)
    if error is not None:
        echo_misplaced(arguments.model, path, error)
        return ERROR
    return exit_code(estimator.result_, signals)


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Parameters of the tagger; notes say which of CRFsuite's have no effect."""
    given = dict(_assignment(text) for text in arguments.set)
    online = SOLVERS.get(arguments.algorithm)
    found: dict[str, Any] = {"min_count": math.ceil(_number(given, "feature.minfreq", 0.0))}
    passes, c2 = _number(given, "max_iterations", 100.0), _number(given, "c2", 1.0)
    if online is not None:
        if passes < 1:
            raise UsageError(f"-p max_iterations must be at least 1, got {passes:g}")
        found.update(solver=online, max_passes=passes)
        ignored = ["c2"]
    else:
        if c2 <= 0:
            raise UsageError("-p c2 must be above 0: an SVM is always regularised")
        found.update(C=1.0 / (2.0 * c2))
        echo(
            f"maxmargin: note: -a {arguments.algorithm}: a structural SVM is trained instead of "
            f"a CRF, with C = 1 / (2 c2) = {found['C']:g}"
        )
        ignored = ["max_iterations"]
    for name in given:
        if name in ignored or name in OTHERS:
            echo(f"maxmargin: note: -p {name} has no effect here")
        elif name not in ("feature.minfreq", "max_iterations", "c2"):
            raise UsageError(f"-p {name}: CRFsuite has no such parameter")
    return found


def _assignment(text: str) -> tuple[str, str]:
    """Name and value of a parameter."""
    name, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"-p must be NAME=VALUE, got {text!r:.40}")
    return name, value


def _number(given: dict[str, str], name: str, default: float) -> float:
    """A parameter that is a number from 0."""
    try:
        value = float(given.get(name, default))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"-p {name} must be a number >= 0, got {given[name]!r:.40}")
    return value


def _split(
    arguments: argparse.Namespace, groups: list[CrfsuiteData]
) -> tuple[CrfsuiteData, CrfsuiteData | None]:
    """What to train on, and what to test on: one of the files, or of that many groups."""
    if arguments.split is not None:
        if arguments.split < 2:
            raise UsageError(f"-g must be at least 2, got {arguments.split}")
        whole, n = _joined(groups), arguments.split
        groups = [CrfsuiteData(whole.X[k::n], whole.y[k::n]) for k in range(n)]
    chosen = arguments.holdout
    if chosen is None:
        return _joined(groups), None
    if not 1 <= chosen <= len(groups) or len(groups) < 2:
        raise UsageError(
            f"-e must be the number of a group, from 1 to {len(groups)}, and there must be "
            f"at least 2 groups: files, or those that -g makes; got {chosen}"
        )
    rest = [group for number, group in enumerate(groups, 1) if number != chosen]
    return _joined(rest), groups[chosen - 1]


def _joined(groups: list[CrfsuiteData]) -> CrfsuiteData:
    """The sequences of all groups."""
    return CrfsuiteData(
        [x for group in groups for x in group.X], [y for group in groups for y in group.y]
    )


# ----- tag --------------------------------------------------------------------------------------


def tag(arguments: argparse.Namespace, signals: Signals) -> int:
    """Label a file, and say how well."""
    estimator = _load(arguments.model)
    wants_probabilities = arguments.probability or arguments.marginal or arguments.marginal_all
    if wants_probabilities and not hasattr(estimator, "calibration_"):
        raise ValueError(
            f"{arguments.model}: -p, -i and -l need probabilities, which a model has that "
            "was trained with 'crfsuite learn --probability'"
        )
    source = open_input(arguments.data)
    data = read_crfsuite(source)
    from ..columns import check_some_known  # it imports Numba, which `learn` does after reading

    check_some_known(estimator, data, source)
    predicted = [list(map(str, ys)) for ys in estimator.predict(data.X)]
    signals.check()
    if not arguments.quiet:
        probabilities = _Probabilities.of(estimator, data) if wants_probabilities else None
        with standard_output("utf-8") as stream:
            stream.writelines(_lines(arguments, data.y, predicted, probabilities))
    if arguments.test:
        for line in _performance(data.y, predicted, estimator.classes_.tolist()):
            echo_result(line)
    return DONE


def _load(path: str) -> Any:
    """Read a tagger of attributes."""
    if is_standard(path):
        raise ValueError("a model cannot be read from standard input: give the name of its file")
    from ...estimators.sequences.sequence import SequenceTagger
    from ...features import FeatureDictionary

    estimator, _ = load_model(path)
    if not isinstance(estimator, SequenceTagger) or not isinstance(
        estimator.features_, FeatureDictionary
    ):
        raise ValueError(f"{path}: this is not a model of 'crfsuite learn'")
    return estimator


class _Probabilities(NamedTuple):
    """Probabilities: of the best labelling of each sequence, and of all labels of its tokens."""

    whole: list[float]
    each: list[list[list[float]]]
    number: dict[str, int]

    @classmethod
    def of(cls, estimator: Any, data: CrfsuiteData) -> _Probabilities:
        """Those of a calibrated tagger."""
        outputs, temperature = estimator._distribution(data.X), estimator.calibration_.temperature
        return cls(
            np.exp(outputs.log_probabilities_of_best(temperature)).tolist(),
            [table.tolist() for table in estimator.predict_proba(data.X)],
            {str(label): k for k, label in enumerate(estimator.classes_.tolist())},
        )


def _lines(
    arguments: argparse.Namespace,
    gold: list[list[str]],
    predicted: list[list[str]],
    probabilities: _Probabilities | None,
) -> Iterator[str]:
    """Labels, behind those of the file if these are wanted, and probabilities."""
    for i, (right, found) in enumerate(zip(gold, predicted, strict=True)):
        if probabilities is not None and arguments.probability:
            yield f"@probability\t{probabilities.whole[i]:.6f}\n"
        for t, (a, b) in enumerate(zip(right, found, strict=True)):
            line = f"{a}\t{b}" if arguments.reference else b
            if probabilities is not None and arguments.marginal:
                line += f":{probabilities.each[i][t][probabilities.number[b]]:.6f}"
            if probabilities is not None and arguments.marginal_all:
                own = zip(probabilities.number, probabilities.each[i][t], strict=True)
                line += "".join(f"\t{label}:{value:.6f}" for label, value in own)
            yield f"{line}\n"
        yield "\n"


def _performance(
    gold: list[list[str]], predicted: list[list[str]], labels: list[Any]
) -> Iterator[str]:
    """Scores in the form in which CRFsuite prints them."""
    pairs = [p for y, z in zip(gold, predicted, strict=True) for p in zip(y, z, strict=True)]
    match = Counter(a for a, b in pairs if a == b)
    model, reference = Counter(b for _, b in pairs), Counter(a for a, _ in pairs)
    yield "Performance by label (#match, #model, #ref) (precision, recall, F1):"
    every = []
    for label in dict.fromkeys([*map(str, labels), *sorted(reference)]):
        n, m, r = match[label], model[label], reference[label]
        precision, recall = n / m if m else 0.0, n / r if r else 0.0
        f1 = 2.0 * n / (m + r) if m + r else 0.0
        every.append((precision, recall, f1))
        yield f"    {label}: ({n}, {m}, {r}) ({precision:.4f}, {recall:.4f}, {f1:.4f})"
    means = ", ".join(f"{mean:.6f}" for mean in np.mean(every, axis=0))
    yield f"Macro-average precision, recall, F1: ({means})"
    right, whole = sum(match.values()), sum(y == z for y, z in zip(gold, predicted, strict=True))
    yield f"Item accuracy: {right} / {len(pairs)} ({right / len(pairs):.4f})"
    yield f"Instance accuracy: {whole} / {len(gold)} ({whole / len(gold):.4f})"


# ----- dump -------------------------------------------------------------------------------------


def dump(arguments: argparse.Namespace, signals: Signals) -> int:
    """List the weights of a model."""
    estimator = _load(arguments.model)
    with standard_output("utf-8") as stream:
        stream.writelines(f"{line}\n" for line in _description(estimator))
    return DONE


def _description(estimator: Any) -> Iterator[str]:
    """Labels, attributes, transitions and state features; weights of zero are left out."""
    labels = list(map(str, estimator.classes_.tolist()))
    names = list(map(str, estimator.features_.get_feature_names_out()))
    yield "LABELS = {"
    yield from (f"  {number:>5}: {label}" for number, label in enumerate(labels))
    yield from ("}", "", "ATTRIBUTES = {")
    yield from (f"  {number:>5}: {name}" for number, name in enumerate(names))
    yield from ("}", "", "TRANSITIONS = {")
    weights = estimator.transition_weights_
    for a, b in np.argwhere(weights != 0.0).tolist():
        yield f"  (1) {labels[a]} --> {labels[b]}: {weights[a, b]:.6f}"
    yield from ("}", "", "STATE_FEATURES = {")
    n = len(names)
    emissions = np.asarray(estimator.coef_)[: n * len(labels)].reshape(n, len(labels))
    for f, k in np.argwhere(emissions != 0.0).tolist():
        yield f"  (0) {names[f]} --> {labels[k]}: {emissions[f, k]:.6f}"
    yield "}"
