"""What a table or figure of a paper is made of, as JSON and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

Cell = str | float | None
Curve = list[tuple[float, float]]


class Claim(NamedTuple):
    """Something the paper says, and whether we find it."""

    text: str
    holds: bool | None  # None: cannot be checked here
    finding: str  # our figures; where it does not hold, why


class Table(NamedTuple):
    """Rows of figures; those of the paper are columns of their own, or rows marked as such."""

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""


class Panel(NamedTuple):
    """One pair of axes with curves by label; ``log`` names the logarithmic axes."""

    title: str
    x: str
    y: str
    curves: dict[str, Curve]
    log: str = ""


@dataclass
class Exhibit:
    """A table or figure of a paper, run again.

    Parameters
    ----------
    title : str
        What the paper shows there.
    differs : str
        What is different here, beside what the paper's module says of all (``DIFFERS``).
    tables, panels : sequence
        Our figures beside the paper's, and curves.
    notes : sequence of str
        How to read the figures; why ours are worse, where they are.
    claims : sequence of Claim
        What the paper concludes from it.
    """

    title: str
    differs: str = ""
    tables: Sequence[Table] = ()
    panels: Sequence[Panel] = ()
    notes: Sequence[str] = ()
    claims: Sequence[Claim] = ()
    about: dict[str, Any] = field(default_factory=dict)  # machine, versions, date, seconds

    def as_json(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self) | {
            "tables": [table._asdict() for table in self.tables],
            "panels": [panel._asdict() for panel in self.panels],
            "claims": [claim._asdict() for claim in self.claims],
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Exhibit:
        """What `as_json` has given."""
        return cls(
            **record
            | {
                "tables": [Table(**table) for table in record["tables"]],
                "panels": [Panel(**panel) for panel in record["panels"]],
                "claims": [Claim(**claim) for claim in record["claims"]],
            }
        )


class Options(NamedTuple):
    """How to run: tiny slices only, and how often each timed run is repeated."""

    quick: bool = False
    repeat: int = 1

    def size(self, quick: int, full: int | None = None) -> int | None:
        """How many examples to use; None for all."""
        return quick if self.quick else full


#: ``EXHIBITS`` of a paper's module: name on the command line, and what runs it.
Exhibits = dict[str, Callable[[Options], Exhibit]]

VERDICTS = {True: "holds", False: "**does not hold**", None: "not checked"}


def markdown(name: str, exhibit: Exhibit, picture: str | None) -> str:
    """A section of the paper's page."""
    heading = f"{name.replace('-', ' ').capitalize()}: {exhibit.title}"
    parts = [f"## {heading}"] + ([exhibit.differs] if exhibit.differs else [])
    for table in exhibit.tables:
        parts += [f"**{table.title}**"] if table.title else []
        parts.append("\n".join(_rows(table)))
    if picture is not None:
        parts.append(f"![{heading}]({picture})")
    parts += exhibit.notes
    if exhibit.claims:
        parts.append("\n".join(map(claim_line, exhibit.claims)))
    about = exhibit.about
    if about:
        parts.append(
            f"*{about['date']}, commit {about['commit']}, {about['machine']}, {about['seconds']:.0f} s "
            f"in all; repeated runs: {about['repeat']}.*"
        )
    return "\n\n".join(parts) + "\n"


def claim_line(claim: Claim) -> str:
    """One point of a list."""
    return f"- {claim.text} - {VERDICTS[claim.holds]}: {claim.finding}"


def _rows(table: Table) -> Iterable[str]:
    """A table in Markdown."""
    yield "| " + " | ".join(table.headers) + " |"
    yield "|" + "---|" * len(table.headers)
    for row in table.rows:
        yield "| " + " | ".join(map(_text, row)) + " |"


def _text(cell: Cell) -> str:
    """Whole numbers whole, others with three digits; nothing known is a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return cell
    if float(cell).is_integer() or abs(cell) >= 1000:
        return f"{cell:,.0f}"
    return f"{cell:.3g}"
