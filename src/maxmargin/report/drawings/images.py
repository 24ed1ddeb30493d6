"""Images with the places of their parts."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

__all__ = ["parts_of_image"]

SCALE = 6


def parts_of_image(image: Any, truth: Any, found: Any) -> str:
    """An image in grey: where parts are found (red dots) and where they are (green circles)."""
    pixels = np.asarray(image, np.float64)
    if pixels.ndim == 3:  # channels: the first is drawn
        pixels = pixels[0]
    rows, columns = pixels.shape
    scale = max(1.0, SCALE * 40.0 / max(rows, columns))
    marks = []
    for k, ((true_row, true_column), (row, column)) in enumerate(zip(truth, found, strict=True)):
        marks.append(
            f"{_circle(true_row, true_column, scale, 5)} style='stroke:var(--green)' "
            f"stroke-width='2' fill='none'><title>part {k}</title></circle>"
            f"{_circle(row, column, scale, 3)} style='fill:var(--red)'/>"
        )
    width, height = columns * scale, rows * scale
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">'
        f'<image href="{_as_png(pixels)}" width="{width:.0f}" height="{height:.0f}" '
        f'style="image-rendering:pixelated"/>{"".join(marks)}</svg>'
        '<p class="muted">circles: where the parts are; dots: where they were found</p>'
    )


def _circle(row: float, column: float, scale: float, radius: int) -> str:
    """The beginning of a circle around the middle of a pixel."""
    return f"<circle cx='{(column + 0.5) * scale:.1f}' cy='{(row + 0.5) * scale:.1f}' r='{radius}'"


def _as_png(pixels: Any) -> str:
    """Grey values as the address of a picture that holds its own data."""
    low, high = float(np.min(pixels)), float(np.max(pixels))
    grey = np.round(255.0 * (pixels - low) / ((high - low) or 1.0)).astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in grey)
    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    packed = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(packed).decode()}"
