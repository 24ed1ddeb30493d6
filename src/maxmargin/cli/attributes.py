"""CRFsuite's data files for the task 'tag': attributes of tokens in place of columns."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ..features import FeatureDictionary
from ..formats.recognising import Kind, recognise
from .codes import UsageError

__all__ = ["ATTRIBUTES", "are_attributes", "attribute_features", "knows_attributes", "write_labels"]

ATTRIBUTES = "attributes"  # what is understood of the files of such a model


def are_attributes(arguments: argparse.Namespace) -> bool:
    """Whether a training file has attributes: --format says so, or how it begins."""
    if arguments.format is not None or not os.path.isfile(arguments.data):  # pipes: read but once
        return bool(arguments.format == "crfsuite")
    return recognise(arguments.data, arguments.encoding) is Kind.CRFSUITE


def attribute_features(arguments: argparse.Namespace) -> FeatureDictionary:
    """What numbers the attributes; options for columns are refused."""
    for name in ("templates", "label_column", "separator"):
        if getattr(arguments, name) is not None:
            flag = name.replace("_", "-")
            raise UsageError(
                f"--{flag} is for columns; {arguments.data} is read as CRFsuite's data"
            )
    return FeatureDictionary(min_count=1 if arguments.min_count is None else arguments.min_count)


def knows_attributes(estimator: Any) -> bool:
    """Whether a tagger was trained on attributes."""
    return isinstance(estimator.features_, FeatureDictionary)


def write_labels(predicted: Any) -> str:
    """One label on each line, a blank line behind each sequence, as CRFsuite has them."""
    return "".join("".join(f"{label}\n" for label in labels) + "\n" for labels in predicted)
