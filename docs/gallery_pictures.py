"""Pictures of examples for their pages: each example saves one where its argument says.

A page of HTML that it saves beside the picture is offered as a download.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst

_folder = tempfile.TemporaryDirectory()


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments of an example: the path of its picture."""
    return [str(Path(_folder.name, Path(script_vars["src_file"]).stem + ".png"))]


def collect(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Move pictures and reports that were saved into the site; return the text that shows them."""
    found, reports = [], ""
    for picture in sorted(Path(_folder.name).glob("*.png")):
        found.append(next(block_vars["image_path_iterator"]))
        shutil.move(picture, found[-1])
    for report in sorted(Path(_folder.name).glob("*.html")):
        kept = Path(found[-1]).with_suffix(".html")
        shutil.move(report, kept)
        place = kept.relative_to(gallery_conf["src_dir"]).as_posix()
        reports += f"\nThe report: :download:`{report.name} </{place}>`\n"
    return figure_rst(found, gallery_conf["src_dir"]) + reports


def _get_sg_image_scraper() -> Callable[..., str]:
    """Return what sphinx-gallery calls behind each block of an example."""
    return collect
