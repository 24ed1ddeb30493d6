"""What a bug report needs: versions of Python, of this package and of what it depends on."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from importlib import metadata
from typing import Any

from ._version import __version__

__all__ = ["show_versions"]

#: Required packages first, then those of the extras.
_PACKAGES = (
    *("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "joblib", "threadpoolctl"),
    *("matplotlib", "rich", "distributed", "dask", "pandas", "polars"),
)


def show_versions() -> None:
    """Print the versions and settings that a bug report should have.

    Like `sklearn.show_versions`: the system, the dependencies (None: not installed), the threads
    of the linear algebra libraries, and how Numba compiles the kernels of this package.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.show_versions()  # doctest: +SKIP
    """
    sections: dict[str, dict[str, object]] = {
        "System": {
            "maxmargin": __version__,
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
            "cores": os.cpu_count(),
        },
        "Dependencies": {name: _version_of(name) for name in _PACKAGES},
        "Threads": _threads(),
        "Numba": _numba_settings(),
    }
    print("\n\n".join(_section(title, rows) for title, rows in sections.items()))


def _section(title: str, rows: dict[str, object]) -> str:
    width = max(map(len, rows))
    return "\n".join([f"{title}:", *(f"{name:>{width}}: {value}" for name, value in rows.items())])


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _threads() -> dict[str, object]:
    """Threads of the linear algebra and OpenMP libraries that the dependencies load."""
    from threadpoolctl import threadpool_info

    for module in ("numpy", "scipy.linalg", "sklearn"):
        importlib.import_module(module)
    return {
        os.path.basename(library["filepath"]): (
            f"{library['num_threads']} ({library['internal_api']} {library['version']})"
        )
        for library in threadpool_info()
    }


def _numba_settings() -> dict[str, object]:
    """How kernels are compiled, and where they are kept."""
    import numba

    from .jit.numba_patches import NEEDED, SWITCH, patches

    config: Any = numba.config
    made = patches()
    left_out = ", ".join(name for name in NEEDED if name not in made)
    return {
        "JIT": "off (NUMBA_DISABLE_JIT)" if config.DISABLE_JIT else "on",
        "patches": ", ".join(sorted(made)) or "none",
        "patches left out": left_out or "none",
        SWITCH: os.environ.get(SWITCH, "not set"),
        "cache folder": config.CACHE_DIR or "__pycache__ beside each module",
    }
