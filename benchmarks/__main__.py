"""``python -m benchmarks``: one thread, decided before numpy is loaded."""

import os

# Libraries read these when they are imported. All timings are of one core.
for _library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"

from .cli import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main())
