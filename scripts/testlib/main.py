"""test - installs dependencies, builds, and runs tests.

Without names of parts: the tests for a change, in some minutes. With names: only these parts. `--ci` runs the tests of
CI, within a time limit: parts in order of importance, some of them by turns; those without time are skipped by name.
`--everything` runs all parts to their end. `--list` shows the parts."""

import argparse
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gtestreport
from testlib import changed, clock, parts
from testlib.history import History, Records
from testlib.run import Run
from testlib.totals import Totals, say

ROOT = Path(__file__).resolve().parent.parent.parent
SLOWEST = 40
# Of --ci, in seconds: no part starts that would not end within the plan, except those that must run; all ends by the limit.
PLAN_SECONDS, LIMIT_SECONDS = 2700, 4500
SHORT_SECONDS = 1000  # more than one part by turns runs only if all ends within this


def commit():
    return "".join(changed.git(ROOT, "rev-parse", "--short=12", "HEAD"))


def in_words(age):
    return "it has not run yet" if age is None else f"last run {age:.0f} days ago" if age >= 1 else "last run today"


def begin(run, part):
    before = run.totals.failed
    begun = run.clock.passed()
    run.interrupted = False
    goes_on = run.guarded(part.name, lambda: part.call(run)) is parts.BESIDE
    seconds = run.clock.passed() - begun
    if goes_on:
        say(f"{part.name}: beside the next parts")
        return
    run.totals.took(part.name, seconds)
    failed = run.totals.failed - before
    say(f"{part.name}: {f'{failed} FAILED' if failed else 'ok'}, {seconds:.0f} s")
    if not run.interrupted and not run.options.filter:
        run.history.ran(part.name, seconds)


def by_plan(run, chosen):
    """Parts in order, as far as there is time; then by turns the one that ran longest ago, and more if that is short."""
    history, now = run.history, run.clock
    fixed = [part for part in chosen if not part.by_turn]
    turns = {part.name: part for part in chosen if part.by_turn}
    waiting = [turns[name] for name in history.oldest_first(turns)]

    def overdue(part):
        age = history.age(part.name)
        return part.by_turn and (age is None or age > parts.OVERDUE_DAYS)

    turns_taken = 0
    for part in [*fixed, *waiting]:
        age, expected = history.age(part.name), history.seconds.get(part.name, part.seconds)
        late = overdue(part)
        has_time = now.fits(expected) and (not turns_taken or now.passed() + expected <= SHORT_SECONDS)
        if part.must or has_time or (late and (now.limit is None or expected < now.left())):
            turns_taken += part.by_turn
            begin(run, part)
        elif part.by_turn and now.fits(expected):
            run.totals.skip(part.name, f"another one had its turn; {in_words(age)}")
        else:
            run.totals.skip(part.name, f"it takes about {expected:.0f} s, {now.passed():.0f} of {now.plan} have passed; {in_words(age)}")
        if overdue(part):
            run.totals.one(f"{part.name}: {in_words(age)}, and {parts.OVERDUE_DAYS} days are allowed", False)


def closing(run):
    totals = run.totals
    print(f"\n{'part':40} {'seconds':>8}")
    for name, seconds in [*totals.steps, ("all", run.clock.passed())]:
        print(f"{name:40} {seconds:8.0f}")
    print("\nthe slowest tests:")
    for line in totals.records.slowest(SLOWEST):
        print(f"{line['seconds']:8.1f} s  {line['part']}: {line['test']}")
    for text in totals.left_out:
        print(f"skipped: {text}")
    for name in totals.again:
        print(f"tried again: {name}")
    for name in totals.bad:
        print(f"FAILED: {name}")
    within = len(totals.again) <= totals.most_again()
    if not within:
        print("FAILED: too many tests failed in their first try")
    print(f"retries: {len(totals.again)} of {totals.ran} tests ({100 * len(totals.again) / (totals.ran or 1):.2f} %); "
          f"{100 * gtestreport.BUDGET:g} % are the budget, up to {totals.most_again()} are chance")
    print(f"total: {totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped", flush=True)
    return 1 if totals.failed or not within else 0


def arguments():
    parser = argparse.ArgumentParser(prog="test", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these, by name (--list)")
    parser.add_argument("--ci", action="store_true", help="what CI runs, by its clock")
    parser.add_argument("--everything", action="store_true", help="all parts, on all kernels; some hours")
    parser.add_argument("--here", action="store_true", help="all own tests of all tools on this kernel too")
    parser.add_argument("--filter", help="of the tests in GoogleTest programs, only those that match (its filter)")
    parser.add_argument("--kernels", help="the kernels of guests (default: those of `scripts/vm names`)")
    parser.add_argument("--no-tools", action="store_true", help="without what traces this machine, which needs root")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build directory (default: build)")
    parser.add_argument("--warm", action="store_true", help="compile all that --ci compiles, and end: the compiler cache has it then")
    parser.add_argument("--list", action="store_true", help="show the parts: name, seconds, last run, what it is")
    options = parser.parse_args()
    known = {part.name for part in parts.PARTS}
    if unknown := sorted(set(options.parts) - known):
        parser.error(f"no such part: {', '.join(unknown)} (--list shows them)")
    options.build = options.build.resolve()
    return options


def chosen_parts(options):
    if options.parts:
        return [part for part in parts.PARTS if part.name in options.parts]
    tier = "everything" if options.everything else "ci" if options.ci else "test"
    found = [part for part in parts.PARTS if tier in part.tiers or tier == "everything"]
    if options.here:
        found += [part for part in parts.PARTS if part.name == "own" and part not in found]
    return [part for part in found if not (options.no_tools and part.traces)]


def main():
    options = arguments()
    history, records = History(ROOT), Records(commit())
    if options.list:
        for part in parts.PARTS:
            print(f"{part.name:14} {max(part.seconds, history.seconds.get(part.name, 0)):5.0f} s  {in_words(history.age(part.name)):22} {part.words}"
                  + (" (by turns)" if part.by_turn else ""))
        return 0
    clock.adopt_orphans()
    now = clock.Clock(PLAN_SECONDS, LIMIT_SECONDS) if options.ci else clock.Clock()
    run = Run(ROOT, options, now, history, Totals(records))
    chosen = chosen_parts(options)
    try:
        if not parts.prepare(run, chosen):
            return closing(run)
        if options.warm:
            for kind in parts.BUILDS:
                run.build(kind)
            return closing(run)
        if options.ci:
            history.runs += 1
            by_plan(run, chosen)
        else:
            for part in chosen:
                begin(run, part)
            run.end_beside()
        return closing(run)
    finally:
        history.write()
        records.write()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(128 + signal.SIGPIPE)
