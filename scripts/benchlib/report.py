"""Rows of results, as text and as JSON."""

import json
import statistics
from dataclasses import asdict, dataclass, field, replace

OK, MISSED, UNKNOWN, INFO = "ok", "MISSED", "not measured", ""


@dataclass
class Row:
    """One figure: a value for each subject, and the requirement on coretap's, as a ratio or absolute."""

    figure: str
    unit: str
    medians: dict = field(default_factory=dict)
    runs: dict = field(default_factory=dict)
    against: str = ""  # the subject that ratio and bar refer to; "" if the bar is a value
    beyond: str = ""  # the subject whose value is first subtracted from both
    ratio: float = None
    bar: float = None
    least: bool = False  # the bar is a minimum, not a maximum
    above: float = None  # alternative to the bar, or without one: at most this much above the floor
    verdict: str = INFO
    note: str = ""


def make_row(figure, unit, runs, against="peer", bar=None, note="", beyond="", least=False, above=None):
    """A row from each subject's runs. A bar relative to a subject that did not run counts as not measured."""
    runs = {label: values for label, values in runs.items() if values}
    medians = {label: statistics.median(values) for label, values in runs.items()}
    row = Row(figure, unit, medians, runs, against, beyond, bar=bar, least=least, above=above, note=note)
    value = ours = medians.get("coretap")
    if against:
        base, theirs = medians.get(beyond) if beyond else 0, medians.get(against)
        known = None not in (ours, theirs, base) and theirs > base
        value = row.ratio = (ours - base) / (theirs - base) if known else None
    if bar is not None:
        row.verdict = UNKNOWN if value is None else OK if (value >= bar if least else value <= bar) else MISSED
    if above is not None:
        known = ours is not None and "floor" in medians
        if known and ours - medians["floor"] <= above:
            row.verdict = OK
        elif bar is None:
            row.verdict = MISSED if known else UNKNOWN
    return row


GROWTH = 1.03  # at most, of a figure of coretap against an older coretap


def against_older(row):
    """The row with that as its bar; None: it has no value of both. Other work on the machine only adds: a growth is one of
    the medians and of the best runs."""
    ours, theirs = row.runs.get("coretap"), row.runs.get("peer")
    if not ours or not theirs or not min(theirs):
        return None
    best, kinder, bar = (max, max, 1 / GROWTH) if row.least else (min, min, GROWTH)
    ratio = kinder(statistics.median(ours) / statistics.median(theirs), best(ours) / best(theirs))
    verdict = OK if (ratio >= bar if row.least else ratio <= bar) else MISSED
    return replace(row, against="peer", beyond="", ratio=ratio, bar=round(bar, 2), above=None, verdict=verdict)


def missing(figure, unit, why, against="peer", bar=None, least=False):
    return Row(figure, unit, against=against, bar=bar, least=least, verdict=UNKNOWN, note=why)


_COLUMNS = ("coretap", "fp", "peer", "bpftrace", "bcc", "ustack", "strace", "perf trace", "node_exporter", "floor", "nothing")


def _number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def as_text(rows):
    columns = [c for c in _COLUMNS if c in ("coretap", "peer") or any(c in row.medians for row in rows)]
    head = ("figure", "unit", *columns, "ratio", "must be", "")
    table = [head]
    for row in rows:
        ratio = f"{row.ratio:.2f} x {row.against}{f' beyond {row.beyond}' if row.beyond else ''}" if row.ratio is not None else ""
        bar = "" if row.bar is None else f"{'>=' if row.least else '<='} {row.bar:g} {'x' if row.against else row.unit}"
        bar += "" if row.above is None else f"{', or' if bar else '<='} floor + {row.above:g}"
        table.append((row.figure, row.unit, *(_number(row.medians.get(c)) for c in columns), ratio, bar, row.verdict))
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    lines = []
    for line, row in zip(table, [None, *rows]):
        text = "  ".join(
            cell.ljust(width) if i < 2 or i >= 2 + len(columns) else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths))
        )
        lines.append(text.rstrip())
        if row and row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)


def spread_text(rows):
    """Minimum and maximum of every subject's runs: the reliability of the medians."""
    lines = ["spread of the runs (lowest..highest):"]
    for row in rows:
        several = {label: runs for label, runs in row.runs.items() if len(runs) > 1}
        if several:
            parts = ", ".join(f"{label} {_number(min(runs))}..{_number(max(runs))}" for label, runs in several.items())
            lines.append(f"  {row.figure}: {parts}")
    return "\n".join(lines) if len(lines) > 1 else ""


def as_json(environment, rows):
    return json.dumps({"environment": environment, "figures": [asdict(row) for row in rows]}, indent=1)
