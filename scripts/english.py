"""Comments in plain technical English: phrases that readers stumble over, with the usual wording.
scripts/lint calls `problems(files)`; `english.py FILE...` prints the same for some files, and
`english.py --same-code REVISION` fails if a source differs from that revision in more than its comments."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src/*.cpp", "src/*.hpp", "include/*.hpp", "bpf/*.c", "bpf/*.h", "tests/*.cpp", "tests/*.hpp", "tests/*.c", "tests/*.h")
# At the start of a sentence that is not a question: the subject must come first, as a noun.
CLAUSE = re.compile(r"(?:^|[.:;] )(?:What|Who|Whom|Whoever|Whatever)\b[^?]*$")
PHRASES = [(re.compile(pattern, re.I), better) for pattern, better in (
    (r"\b(is|are|was|were|be|been) told\b|\btells?\b|\btold\b", "reports, indicates, distinguishes"),
    (r"\b(lies|lie|lay|lain)\b|\b(lives?|lived) (in|on|at|for|as|until|longer)\b", "is in, is at, is valid until"),
    (r"\bpart(y|ies)\b|\bstrangers?\b|\btwins?\b", "task, unknown process, duplicate"),
    (r"\bwho\b|\bwhom\b|\bwhoever\b|\bnobody\b|\banybody\b", "name the thing: the task, the caller, any user"),
    (r"\bof (its|their|one's|our) own\b", "private, separate, own"),
    (r"\b(hears?|heard|speaks?|spoke)\b", "is notified of, records, mentions"),
    (r"\bwhat (is|was|are|were) (not )?(wanted|asked|shown|known|meant|there|left|true|said|given)\b", "name the thing"),
    (r"\banew\b|\bfor good\b|\bfor (the )?want of\b|\bin the midst\b", "again, permanently, without, during"),
    (r"\bso (many|much|often|long) (as are|that are|of them)\b|\bat most so\b", "give the number or its name"),
    (r"\b(is|are) no more\b|\bon (its|their) way\b", "no longer exists, is pending"),
    (r"\b(stands?|stood) (in|behind|there|for itself)\b", "is in, follows"),
    (r"\bfor the verifier's sake\b|\bthe verifier's words\b", "say what the verifier needs; verifier log"),
    (r"\bwishes?\b(?! to)|\bis had\b|\bbe had\b", "request, is available"),
)]
_TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def comments(text):
    """-> line number, text of each comment; // lines below each other are one"""
    found, last = [], -1
    for token in _TOKEN.finditer(text):
        words = token.group()
        if not words.startswith(("//", "/*")):
            continue
        line = text.count("\n", 0, token.start()) + 1
        words = re.sub(r"^\s*(?:///?<?|/\*\*?|\*/|\*(?!/))|\*/$", "", words, flags=re.M).strip()
        alone = not text[text.rfind("\n", 0, token.start()) + 1:token.start()].strip()
        if token.group().startswith("//") and alone and last == line - 1 and found:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + words)
        else:
            found.append((line, words))
        last = line if token.group().startswith("//") and alone else -1
    return found


def problems(files):
    found = []
    for name in files:
        for line, words in comments((ROOT / name).read_text()):
            joined = " ".join(words.split())
            for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", joined):
                if match := CLAUSE.search(sentence):
                    found.append(f"{name}:{line}: \"{match.group().strip()[:60]}\": begin with the noun")
            for pattern, better in PHRASES:
                if match := pattern.search(joined):
                    found.append(f"{name}:{line}: \"{match.group()}\": {better}")
    return found


def code_of(text):
    """The code without comments and line breaks."""
    bare = _TOKEN.sub(lambda token: " " if token.group().startswith(("//", "/*")) else token.group(), text)
    return " ".join(bare.split())


def changed_code(revision):
    git = ["git", "-C", ROOT]
    names = subprocess.run([*git, "diff", "--name-only", revision, "--", *SOURCES], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    before = {name: subprocess.run([*git, "show", f"{revision}:{name}"], stdout=subprocess.PIPE, text=True).stdout for name in names}
    after = {name: (ROOT / name).read_text() if (ROOT / name).exists() else "" for name in names}
    return [name for name in names if code_of(before[name]) != code_of(after[name])]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--same-code"]:
        lines = changed_code(sys.argv[2])
    else:
        files = sys.argv[1:] or subprocess.run(["git", "-C", ROOT, "ls-files", *SOURCES], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        lines = problems(files)
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
