"""ELF files of 64 bits, little-endian: their sections, and whether they are static."""

import struct
from typing import NamedTuple


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


def is_elf(image):
    return image.startswith(b"\x7fELF\x02\x01")


def is_static(path):
    """Whether an ELF executable names no interpreter."""
    with open(path, "rb") as file:
        header = file.read(64)
        if not is_elf(header):
            return False
        table, = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(table)
        segments = file.read(size * count)
    return all(struct.unpack_from("<I", segments, size * i)[0] != 3 for i in range(count))


def text_at(image, at):
    return image[at:image.index(b"\0", at)].decode()


def sections(image):
    table, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", image, table + size * i) for i in range(count)]
    texts = headers[names][4]
    return [Section(text_at(image, texts + name), *rest) for name, *rest in headers]
