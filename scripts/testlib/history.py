"""Results of earlier runs: when each part ran last and how long it took, and the result of each test.

In two places: tests/turns.tsv, which is in the tree, so that a new machine has it, and the cache directory. A run
writes both; the file is committed with the change."""

import json
import time

from cachedir import cache_dir

DAYS, FORGOTTEN_DAYS = 86400, 90
RECENT_BYTES = 4_000_000  # some runs
MOST_BYTES = 30_000_000  # of the records of tests; older ones are deleted


class History:
    def __init__(self, root, now=None):
        self.now = time.time() if now is None else now
        self.tree, self.kept = root / "tests/turns.tsv", cache_dir() / "turns.json"
        self.dates, self.seconds, self.runs = {}, {}, 0  # runs: the number of runs with parts by turns
        for line in self.tree.read_text().splitlines() if self.tree.exists() else []:
            if line and not line.startswith("#"):
                part, day, seconds = line.split("\t")
                if part == "runs":
                    self.runs = int(seconds)
                    continue
                self.dates[part] = time.mktime(time.strptime(day, "%Y-%m-%d"))
                self.seconds[part] = float(seconds)
        try:
            kept = json.loads(self.kept.read_text())
        except (OSError, ValueError):
            kept = {}
        self.runs = max(self.runs, kept.pop("runs", 0))
        for part, (when, seconds) in kept.items():
            self.dates[part] = max(when, self.dates.get(part, 0))
            self.seconds[part] = seconds

    def age(self, part):
        """Days since its last run; None: it never ran."""
        return (self.now - self.dates[part]) / DAYS if part in self.dates else None

    def oldest_first(self, parts):
        return sorted(parts, key=lambda part: self.dates.get(part, 0))

    def ran(self, part, seconds):
        self.dates[part], self.seconds[part] = self.now, round(seconds, 1)

    def write(self):
        # Removes parts that no longer exist.
        self.dates = {part: when for part, when in self.dates.items() if self.now - when < FORGOTTEN_DAYS * DAYS}
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        new = self.kept.with_suffix(".new")
        kept = {"runs": self.runs, **{part: (when, self.seconds[part]) for part, when in self.dates.items()}}
        new.write_text(json.dumps(kept, indent=1) + "\n")
        new.replace(self.kept)
        lines = [f"runs\t{time.strftime('%Y-%m-%d', time.localtime(self.now))}\t{self.runs}\n"]
        lines += [f"{part}\t{time.strftime('%Y-%m-%d', time.localtime(when))}\t{self.seconds[part]:.0f}\n"
                 for part, when in sorted(self.dates.items())]
        self.tree.write_text("# Parts of the tests: when each ran last, and how many seconds it took; runs: how many took turns. "
                             "scripts/test writes it.\n" + "".join(lines))


class Records:
    """A line per test and try, for the lists at the end of a run and for later analysis."""

    def __init__(self, commit):
        self.path, self.commit, self.lines = cache_dir() / "tests.jsonl", commit, []

    def add(self, part, name, attempt, result, seconds):
        self.lines.append({"part": part, "test": name, "try": attempt, "result": result, "seconds": round(seconds, 3)})

    def seconds(self):
        """Duration of each test in its last first try of earlier runs."""
        found = {}
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(max(0, self.path.stat().st_size - RECENT_BYTES))
                file.readline()
                for line in map(json.loads, file):
                    if line["try"] == 1:
                        found[line["test"]] = line["seconds"]
        return found

    def slowest(self, most):
        return sorted(self.lines, key=lambda line: -line["seconds"])[:most]

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size > MOST_BYTES:
            self.path.replace(self.path.with_suffix(".old"))
        when = int(time.time())
        with open(self.path, "a") as file:
            for line in self.lines:
                file.write(json.dumps({"when": when, "commit": self.commit, **line}) + "\n")
