"""Where examples save pictures while the site is built: pages show the figures themselves."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

_folder = tempfile.TemporaryDirectory()


def arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Return the arguments of an example: the path of its picture."""
    return [str(Path(_folder.name, Path(script_vars["src_file"]).stem + ".png"))]
