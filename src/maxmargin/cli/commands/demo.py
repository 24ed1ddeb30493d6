"""``maxmargin demo``: reads words of handwritten digits, with and without their context."""

from __future__ import annotations

import argparse
import contextlib
import os.path
import sys
from typing import Any

from ..console import DONE, Signals
from ..options import add_command, non_negative

__all__ = ["add_parser", "run"]

N_TRAIN, N_TEST, NOISE = 3000, 1000, 0.5
C = 0.1
SHADES = " .:-=+*#%@"
GAP_NOTE = "the distance from the best possible objective is at most this"


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Describe the command."""
    parser = add_command(
        commands,
        "demo",
        run,
        help="train on words of handwritten digits, in well under a minute",
        description="Train a tagger on words of real handwritten digits, made hard to read by "
        "noise, and compare it with the same model without transitions between the digits.",
    )
    parser.add_argument(
        "--output",
        default="maxmargin-demo.png",
        metavar="PNG",
        help="convergence plot to write (default: maxmargin-demo.png)",
    )
    parser.add_argument("--no-plot", action="store_true", help="write no plot")
    parser.add_argument(
        "--words",
        type=non_negative,
        default=N_TRAIN,
        help=f"number of words to train on (default {N_TRAIN})",
    )
    parser.add_argument(
        "--seed", type=non_negative, default=0, help="seed of the words (default 0)"
    )
    return parser


def run(arguments: argparse.Namespace, signals: Signals) -> int:
    """Train, compare, draw."""
    from ...datasets import make_digit_words
    from ...estimators.sequences.sequence import SequenceTagger

    if not arguments.no_plot:
        _check_picture(arguments.output)
    words = make_digit_words(arguments.words, N_TEST, noise=NOISE, random_state=arguments.seed)
    _print_title("Reading words of handwritten digits")
    print(
        f"{arguments.words} words to learn from, {N_TEST} to be tested on; images of 8 x 8 pixels"
    )
    print("from scikit-learn's load_digits, under noise, in an order that a grammar makes:\n")
    _print_word(words.X_train[0], words.y_train[0].tolist())

    tagger = SequenceTagger(C=C, random_state=arguments.seed, verbose=1)
    tagger.fit(words.X_train, words.y_train)
    alone = SequenceTagger(C=C, random_state=arguments.seed)
    alone.fit(_letters(words.X_train), _letters(words.y_train))

    result = tagger.result_
    _print_title("Test accuracy")
    with_context = tagger.score(words.X_test, words.y_test)
    without = alone.score(_letters(words.X_test), _letters(words.y_test))
    print(f"SequenceTagger                        {_bar(with_context)} {100 * with_context:5.1f} %")
    print(f"the same model without transitions    {_bar(without)} {100 * without:5.1f} %")

    _print_title("Certificate")
    print(f"objective (primal)  {result.primal:12.4f}")
    print(f"lower bound (dual)  {result.dual:12.4f}")
    print(f"duality gap         {result.gap:12.4f}   {GAP_NOTE}")
    print(f"relative gap        {result.relative_gap:12.2e}")
    print(
        f"oracle calls        {result.n_oracle_calls:12d}   {result.n_passes:.1f} passes over the "
        f"words, in {result.seconds:.2f} s"
    )
    if not arguments.no_plot:
        print()
        _write_plot(result, arguments.output)
    return DONE


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


def _write_plot(result: Any, output: str) -> None:
    """Draw the convergence, or say what is missing for it."""
    from ...report import plot_convergence

    try:
        plot_convergence(result, output)
    except ImportError as error:
        print(f"No convergence plot: {error}")
    else:
        print(f"Convergence plot: {os.path.normpath(output)}")


def _print_title(title: str) -> None:
    """A heading."""
    print(f"\n{_bold(title)}\n", flush=True)


def _bold(text: str) -> str:
    """Bold text where a terminal shows it."""
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _bar(fraction: float, width: int = 20) -> str:
    """A fraction of 1 as a bar."""
    full = round(fraction * width)
    return "#" * full + "." * (width - full)


def _print_word(images: Any, digits: list[int]) -> None:
    """Draw the digits of a word, side by side, as many as fit a line."""
    shown = min(len(digits), 8)
    for row in range(8):
        strips = []
        for image in images[:shown]:
            pixels = image.reshape(8, 8)[row]
            strips.append("".join(SHADES[int(v * (len(SHADES) - 1))] for v in pixels))
        print("  " + "  ".join(strips))
    print("  " + "  ".join(f"{digit:^8}" for digit in digits[:shown]) + "\n")
