"""Effects of a change: files by git, tools and directories of the library by paths and by compilers' dependencies."""

import re
import shutil
import subprocess
from pathlib import Path

import gtestreport

MOST_LIVES = 8  # tools; `scripts/test` runs the life test of all
LIFE = gtestreport.LIFE.removesuffix("*")
TOOL_FILE = re.compile(r"^(?:bpf|src/tools|tests/tools)/\w+/([a-z0-9]+)(?:_test)?(?:[./].*)?$")
OBJECT_OF_TOOL = re.compile(r"(?:^|/)skel/(\w+)\.bpf\.o|/src/tools/\w+/(\w+?)(?:\.cpp|/)")


def git(root, *words):
    """Lines of git's output; none without git or a repository."""
    if not shutil.which("git"):
        return []
    done = subprocess.run(["git", "-C", root, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [line for line in done.stdout.splitlines() if line]


def files(root, since="HEAD"):
    """Changed since a commit, or not committed; without deleted files."""
    names = {*git(root, "diff", "--name-only", since), *git(root, "ls-files", "--others", "--exclude-standard")}
    return sorted(name for name in names if (root / name).exists())


def tools_of(root):
    return set(re.findall(r"^add_tool\(\w+/(\w+)\)$", (root / "CMakeLists.txt").read_text(), re.M))


def _read_by(root, build):
    """file -> objects compiled from it: by `ninja -t deps`, and dependency files of kernel programs."""
    found, current = {}, None
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines():
        if line and not line.startswith("    "):
            current = line.split(":")[0]
        elif line.strip() and current:
            found.setdefault((build / line.strip()).resolve(), set()).add(current)
    for left in (build / "skel").glob("*.d"):
        for word in left.read_text().replace("\\\n", " ").split()[1:]:
            found.setdefault((build / word).resolve(), set()).add(f"skel/{left.name.removesuffix('.full.d')}")
    return {path.relative_to(root).as_posix(): objects for path, objects in found.items() if path.is_relative_to(root)}


def touched(root, names, build):
    """-> tools whose own files are among these, and tools that include changed headers"""
    tools = tools_of(root)
    own = {match[1] for name in names if (match := TOOL_FILE.match(name))}
    readers = set()
    headers = [name for name in names if name.startswith(("bpf/", "include/")) and name.endswith((".h", ".hpp"))]
    if headers and (build / "build.ninja").exists():
        read_by = _read_by(root, build)
        for name in headers:
            for made in read_by.get(name, ()):
                if match := OBJECT_OF_TOOL.search(made):
                    readers.add(match[1] or match[2])
    return sorted(own & tools), sorted((readers - own) & tools)


def tests(program, own, readers):
    """Names of the tests for changed tools: all for tools whose own files have changed, the life test for some that include them."""
    lives = [*own, *readers][:MOST_LIVES]
    return [name for name, test in gtestreport.listed(program).items()
            if (gtestreport.is_own(test) and gtestreport.tool_of(name, test) in own)
            or (name.startswith(LIFE) and name.rpartition("/")[2] in lives)]


def rooms(names):
    """-> directories of the library whose code or unit tests have changed"""
    return {match[1] for name in names if (match := re.match(r"^(?:src|tests/unit)/(?!tools/)(\w+)/", name))}
