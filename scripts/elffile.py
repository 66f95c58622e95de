"""The sections of ELF files: 64 bits, little-endian."""

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


def text_at(image, at):
    return image[at:image.index(b"\0", at)].decode()


def sections(image):
    table, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", image, table + size * i) for i in range(count)]
    texts = headers[names][4]
    return [Section(text_at(image, texts + name), *rest) for name, *rest in headers]
