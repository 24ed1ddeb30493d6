"""``maxmargin demo``: reads words of handwritten digits, with and without their context."""

from __future__ import annotations

import argparse
import contextlib
import os.path
import sys
from typing import Any

from ..console import DONE, Signals
from ..numbers import positive
from ..options import add_command, add_random_state

__all__ = ["add_parser", "run"]

N_TRAIN, N_CALIBRATION, N_TEST, NOISE = 3000, 300, 1000, 0.4
C = 0.1
SHADES = " .:-=+*#%@"
RED = "#c0392b"


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "demo",
        run,
        help="train on words of handwritten digits, in well under a minute",
        description="Train a tagger on words of real handwritten digits, made hard to read by "
        "noise, compare it with the same model without context, and draw words that it read, with "
        "its confidences.",
    )
    parser.add_argument(
        "--output",
        default="maxmargin-demo.png",
        metavar="PNG",
        help="picture to write (default maxmargin-demo.png)",
    )
    parser.add_argument("--no-plot", action="store_true", help="draw no picture")
    parser.add_argument(
        "--words",
        type=positive,
        metavar="N",
        default=N_TRAIN,
        help=f"number of words to train on (default {N_TRAIN})",
    )
    add_random_state(parser, "words")
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train, compare, draw."""
    import numpy as np

    from ...datasets import make_digit_words
    from ...estimators.sequences.sequence import SequenceTagger

    if not arguments.no_plot:
        _check_picture(arguments.output)
    n_held_out = N_CALIBRATION + N_TEST
    words = make_digit_words(
        arguments.words, n_held_out, noise=NOISE, random_state=arguments.random_state
    )
    X_test, y_test = words.X_test[N_CALIBRATION:], words.y_test[N_CALIBRATION:]
    _print_title("Reading words of handwritten digits")
    print(f"{arguments.words} words to train on, {N_TEST} to test on: digits of")
    print(
        "scikit-learn's load_digits with noise, in an order that follows a grammar.\n", flush=True
    )

    tagger = SequenceTagger(C=C, random_state=arguments.random_state)
    tagger.fit(words.X_train, words.y_train)
    tagger.calibrate(words.X_test[:N_CALIBRATION], words.y_test[:N_CALIBRATION])
    alone = SequenceTagger(C=C, random_state=arguments.random_state)
    alone.fit(_letters(words.X_train), _letters(words.y_train))

    readings, probabilities = tagger.predict(X_test), tagger.predict_proba(X_test)
    # A short word with one mistake, if there is any.
    shown = max(
        range(N_TEST),
        key=lambda i: (len(y_test[i]) <= 6, -abs(np.count_nonzero(readings[i] != y_test[i]) - 1)),
    )
    _print_word(X_test[shown])
    _print_line("it is", [str(digit) for digit in y_test[shown]])
    _print_line("read", [str(digit) for digit in readings[shown]])
    _print_line("sure", [f"{100 * p:.0f} %" for p in probabilities[shown].max(axis=1)])

    _print_title("Digits read correctly")
    accuracy = tagger.score(X_test, y_test)
    accuracy_alone = alone.score(_letters(X_test), _letters(y_test))
    print(f"SequenceTagger, which sees whole words  {_bar(accuracy)}")
    print(f"the same model, each digit alone        {_bar(accuracy_alone)}")

    result = tagger.result_
    _print_title("Certificate")
    print(f"Trained in {result.seconds:.2f} s, {result.n_passes:.1f} passes over the words.")
    print(f"The model's objective is {result.primal:.1f}, and that of no other weights is below")
    gap = 100 * result.relative_gap
    print(f"{result.dual:.1f}: it is proved to be within {gap:.1f} % of the optimum.")
    if not arguments.no_plot:
        print()
        try:
            figure = _draw(X_test, y_test, readings, probabilities, accuracy, result)
        except ImportError as error:
            print(f"No picture: {error}")
        else:
            from ...report.plots import save_figure

            save_figure(figure, arguments.output)
            print(
                f"Picture of words it read, right and wrong: {os.path.normpath(arguments.output)}"
            )
    return DONE


def _draw(X: Any, y: Any, readings: Any, probabilities: Any, accuracy: float, result: Any) -> Any:
    """Draw two words that were read and two with mistakes, beside the certificate."""
    from ...report.plots import INK, MUTED, draw_objective, figure_class

    short = [i for i in range(len(y)) if 5 <= len(y[i]) <= 7]
    right = [i for i in short if (readings[i] == y[i]).all()][:2]
    wrong = [i for i in short if (readings[i] != y[i]).any()][:2]
    figure = figure_class()(figsize=(9.0, 4.7), dpi=100, layout="constrained")
    left, axes = figure.subplots(1, 2, width_ratios=[1.6, 1])
    for row, i in enumerate([*right, *wrong]):
        for t, image in enumerate(X[i]):
            x, top, is_right = 1.25 * t, -1.95 * row, readings[i][t] == y[i][t]
            left.imshow(image.reshape(8, 8), cmap="gray_r", extent=(x, x + 1, top - 1, top))
            digit = f"{readings[i][t]}" if is_right else f"{readings[i][t]} (is {y[i][t]})"
            style = {"ha": "center", "va": "center", "color": INK if is_right else RED}
            left.text(x + 0.5, top - 1.28, digit, fontsize=11, weight="bold", **style)
            sure = f"{100 * probabilities[i][t].max():.0f} %"
            left.text(x + 0.5, top - 1.6, sure, fontsize=8, **style)
            if not is_right:
                corner = [x - 0.04, x + 1.04, x + 1.04, x - 0.04, x - 0.04]
                sides = [top - 1.04, top - 1.04, top + 0.04, top + 0.04, top - 1.04]
                left.plot(corner, sides, color=RED, linewidth=1.5)
    left.set(xlim=(-0.2, 1.25 * 7), ylim=(-1.95 * (len(right) + len(wrong)) + 0.2, 0.2))
    left.axis("off")
    title = f"Words it read, with its confidences: {100 * accuracy:.0f} % of all digits are right"
    left.set_title(title, loc="left", fontsize=10, color=INK)
    draw_objective(axes, result.history, lambda record: record.seconds)
    bottom = axes.get_ylim()[0]
    axes.axhspan(bottom, result.dual, color=MUTED, alpha=0.12, linewidth=0)
    note = "no model can have an objective\nbelow the lower bound"
    axes.text(0.97, 0.3, note, ha="right", color=INK, fontsize=9, transform=axes.transAxes)
    title = f"Certificate: within {100 * result.relative_gap:.1f} % of the optimum"
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xlabel("seconds of training", color=INK)
    axes.set_ylabel("objective", color=INK)
    axes.set_ylim(bottom)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.tick_params(colors=MUTED, labelsize=8)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower right")
    return figure


def _check_picture(output: str) -> None:
    """Raise, before training, if the picture cannot be written."""
    from ...report.plots import picture_format
    from ..files import check_text_output

    with contextlib.suppress(ImportError):  # which is reported at the end
        picture_format(output)
    check_text_output(output, [], force=True)  # that of the last demo, as a rule


def _letters(words: list[Any]) -> list[Any]:
    """Each letter of each word as a word of its own."""
    return [word[t : t + 1] for word in words for t in range(len(word))]


def _print_title(title: str) -> None:
    """A heading."""
    print(f"\n{_bold(title)}\n", flush=True)


def _bold(text: str) -> str:
    """Bold text where a terminal shows it."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _bar(fraction: float, width: int = 20) -> str:
    """A fraction of 1 as a bar and in per cent."""
    full = round(fraction * width)
    return "#" * full + "." * (width - full) + f" {100 * fraction:5.1f} %"


def _print_word(images: Any) -> None:
    """Draw the digits of a word, side by side, as many as fit a line."""
    for row in range(8):
        strips = []
        for image in images[:8]:
            pixels = image.reshape(8, 8)[row]
            strips.append("".join(SHADES[int(v * (len(SHADES) - 1))] for v in pixels))
        print("        " + "  ".join(strips))


def _print_line(name: str, cells: list[str]) -> None:
    """Print one value below each digit of a word."""
    print(f"{name:>6}  " + "  ".join(f"{cell:^8}" for cell in cells[:8]).rstrip())
