"""Exceptions of threads, recursion to its limit, calls from C back into Python, a child."""
import ctypes
import subprocess
import sys
import threading
import zlib


def fails(n):
    if n % 3 == 0:
        raise ValueError("three")
    return n


def work(results):
    s = len(zlib.decompress(zlib.compress(b"abc" * 30000)))
    for i in range(3000):
        try:
            s += fails(i)
        except ValueError:
            s -= i
    try:
        work.deep = lambda: work.deep()
        work.deep()
    except RecursionError:
        s += 1
    results.append(s)


results = []
threads = [threading.Thread(target=work, args=[results]) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
numbers = (ctypes.c_int * 500)(*reversed(range(500)))
pointer = ctypes.POINTER(ctypes.c_int)
compare = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)(lambda a, b: a[0] - b[0])
ctypes.CDLL(None).qsort(numbers, 500, 4, compare)
echo = subprocess.run(["/bin/echo", "x"], capture_output=True).stdout
print("ended with", sum(results) + numbers[3] + len(echo))
sys.exit(7)
