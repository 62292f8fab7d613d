"""A ledger's tables as bytes, to be changed by hand (docs/internals/ledger-format.md): what somebody could put where ledgers lie."""
import os
import re
import struct

HEAD = struct.Struct("<8s6I2Q")
TABLE_BYTES, EXTENT = 16 + 5 * 8, struct.Struct("<IIQQQ")


def tables():
    """The tables' names, in the order of the file."""
    with open(os.path.join(os.environ["top_srcdir"], "src", "base", "store", "tables.def"), encoding="ascii") as file:
        return re.findall(r"^MS_TABLE\((\w+),", file.read(), re.M)


class Ledger:
    """One that was read."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = bytearray(file.read())
        self.names = tables()
        extents = HEAD.size + len(self.names) * TABLE_BYTES
        count = HEAD.unpack_from(self.bytes)[6]
        self.extents = [EXTENT.unpack_from(self.bytes, extents + i * EXTENT.size) for i in range(count)]

    def _place(self, table, at):
        number = self.names.index(table)
        return next(offset + at - first for of, _, first, offset, size in self.extents
                    if of == number and first <= at < first + size)

    def read(self, table, at, count):
        """Bytes of a table."""
        place = self._place(table, at)
        return bytes(self.bytes[place:place + count])

    def write(self, table, at, data):
        """The same, changed; within one extent."""
        place = self._place(table, at)
        self.bytes[place:place + len(data)] = data

    def rows(self, table):
        """How many rows the table says that it has."""
        return struct.unpack_from("<Q", self.bytes, HEAD.size + self.names.index(table) * TABLE_BYTES + 32)[0]

    def set_rows(self, table, count):
        """It says another number."""
        struct.pack_into("<Q", self.bytes, HEAD.size + self.names.index(table) * TABLE_BYTES + 32, count)

    def save(self, path, owner=None):
        """Writes it; as another user's, if that is said."""
        with open(path, "wb") as file:
            file.write(self.bytes)
        os.chmod(path, 0o644)
        if owner is not None:
            os.chown(path, owner, owner)
