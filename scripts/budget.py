"""How large the executable may be."""

KB, MB = 1000, 1000 * 1000


def static_executable(tools):
    """Most bytes of the static executable, stripped, with so many tools: libraries, the loader and the kernel objects of
    32 tools, 20 kB for each tool more (its object, 8 kB at most on average, and its declaration), the compiler of
    expressions with what reads the words of trace and argdist, the commands tplist and bpflist, and what reads user programs'
    debug information and prints structs whole, then 5 kB in each of 30 objects that find the files of user stacks by themselves,
    and the types of modules and places within functions; the command serve with libevent, toml++ and what makes metrics and
    profiles, and files that are rotated; last a second way to read the kernel's structures in the objects that follow them."""
    return min(4500 * KB + 250 * KB + 1060 * KB + 20 * KB + 80 * KB + 40 * KB + 30 * 5 * KB + 100 * KB + 20 * KB * max(0, tools - 32), 8 * MB)
