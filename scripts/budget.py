"""Size limit of the executable."""

KB, MB = 1000, 1000 * 1000


def static_executable(tools):
    """Maximum size of the static executable, stripped, for this number of tools: libraries, the loader and the kernel objects of
    32 tools, 20 kB for each further tool (its object, 8 kB at most on average, and its declaration), the compiler of
    expressions with the parsers of trace and argdist, the commands tplist and bpflist, and the reader of user programs'
    debug information and the printing of whole structs, then 5 kB in each of 30 objects that find the files of user stacks,
    and the types of modules and offsets within functions; the command serve with libevent, toml++, metrics and
    profiles, and rotated files; a second way to read the kernel's structures in the objects that use them; last the command why
    with its rules, and the reports of walltime (graphs, histograms) and blockedby (chains, trees), 250 kB together; the command mcp, comparisons with recorded profiles and the report of neighbours,
    180 kB; tables and trees of stacks, the guide and the search of find, 300 kB;
    the reports of perfcount, workset, cachefiles and of nested calls, with the legends of pictures, 150 kB;
    recordings, timeline with the writer of Perfetto's format, compare, and source lines from debug information, 1,050 kB;
    and what protects branches and the stack (-fcf-protection, -fstack-clash-protection), 1 %, 110 kB;
    the frames of Python in 25 objects, the flight recorder, events of PMUs, and comparisons of rows and stacks, 300 kB;
    the frames of JavaScript in the same objects, recordings that serve keeps with conditions on metrics, and layouts in recordings,
    500 kB; the frames of Java in 25 objects, fine slots, recordings to give away, and those of expressions, 280 kB. (With -Os also
    for src/unwind and src/symbols it would be 110 kB less, and profile would use a third more CPU time to read tables.)"""
    return min(4500 * KB + 250 * KB + 1060 * KB + 20 * KB + 80 * KB + 40 * KB + 30 * 5 * KB + 100 * KB + 250 * KB + 180 * KB + 300 * KB + 150 * KB + 1050 * KB + 110 * KB + 300 * KB + 500 * KB + 280 * KB + 20 * KB * max(0, tools - 32), 11400 * KB)
