"""hosts PORT FIRST SECOND: answers for any number of hosts, each a path: /0, /1 ... The pages are those of the two files,
taken from one host ten seconds apart; their counters grow as between the two, at a rate per host."""

import asyncio
import gzip
import sys
import time
from pathlib import Path

APART = 10  # seconds between the two files
BEGAN = time.monotonic()


def template(first, second):
    """Text, then name, first value and growth of each line with a number, in their order."""
    before = dict(line.rsplit(" ", 1) for line in first.splitlines() if line and not line.startswith("#"))
    parts = []
    kind = {}
    for line in second.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, type_of = line.split(" ")
            kind[name] = type_of
        if line.startswith("#"):
            parts.append((line, None, 0))
            continue
        name, value = line.rsplit(" ", 1)
        family = name.partition("{")[0]
        grows = kind.get(family) == "counter" or family.endswith(("_bucket", "_count", "_sum"))
        was = float(before.get(name, value))
        parts.append((name, float(value), (float(value) - was) / APART if grows else 0))
    return parts


def page(parts, host, now):
    """Integers stay integers; buckets keep their order, as all of a host grow at the same rate."""
    rate = (0.5 + (host * 7919 % 1000) / 1000) * (now - BEGAN)
    lines = []
    for name, value, growth in parts:
        if value is None:
            lines.append(name)
            continue
        number = value + growth * rate
        lines.append(f"{name} {int(number) if value.is_integer() else number}")
    return "\n".join(lines) + "\n"


async def answer(reader, writer, parts):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].lstrip(b"/")
            body = page(parts, int(path) if path.isdigit() else 0, time.monotonic()).encode()
            more = b""
            if b"gzip" in head:
                body, more = gzip.compress(body, 1), b"Content-Encoding: gzip\r\n"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n" + more
                         + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    port, first, second = sys.argv[1:]
    parts = template(Path(first).read_text(), Path(second).read_text())
    server = await asyncio.start_server(lambda r, w: answer(r, w, parts), "127.0.0.1", int(port), backlog=2000)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
