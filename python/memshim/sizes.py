"""Sizes as memshim's variables have them (MEMSHIM_LIMIT; src/base/size.c): K, M, G, T, alone or with B or iB,
in any case, all of them powers of 1024, a fraction where a unit follows, `%` of the device's memory, or
`none`. Blanks before the unit, and a B alone, are allowed here beside that."""

import re
from fractions import Fraction
from typing import NamedTuple, Optional, Union

_SIZE = re.compile(r"([0-9]+)(?:\.([0-9]+))?[ \t]*(?:([KMGT])(?:iB|B)?|(B))?", re.IGNORECASE | re.ASCII)
_PERCENT = re.compile(r"([0-9]+)[ \t]*%", re.ASCII)
_SHIFTS = {"K": 10, "M": 20, "G": 30, "T": 40}
_BYTES_MAX = (1 << 64) - 1

ALLOWED = (
    "a size: a number such as 512, 1.5G, 24 MB or 1GiB, all units powers of 1024, "
    "or % of the device's memory, or none"
)


class Size(NamedTuple):
    """A bound: so many bytes, or a share of a device's memory, or none (both are None)."""

    bytes: Optional[int]
    percent: Optional[int] = None

    def of(self, total_bytes: int) -> Optional[int]:
        """The bytes that it is on a device of `total_bytes`; None is no bound."""
        return self.bytes if self.percent is None else total_bytes * self.percent // 100


def parse_size(text: Union[str, int]) -> Size:
    """The size that is written so; ValueError says what is allowed. An integer is a number of bytes."""
    if isinstance(text, int) and not isinstance(text, bool) and 0 <= text <= _BYTES_MAX:
        return Size(text)
    words = text.strip(" \t") if isinstance(text, str) else ""
    if words == "none":
        return Size(None)
    share = _PERCENT.fullmatch(words)
    if share and len(share[1]) < 20 and int(share[1]) <= 100:
        return Size(None, int(share[1]))
    size = _SIZE.fullmatch(words)
    if size and len(size[1]) < 40 and (size[2] is None or size[3]):
        number = Fraction(int(size[1])) + (
            Fraction(int(size[2][:13]), 10 ** len(size[2][:13])) if size[2] else 0
        )
        number_bytes = int(number * (1 << _SHIFTS.get((size[3] or "").upper(), 0)))
        if number_bytes <= _BYTES_MAX:
            return Size(number_bytes)
    raise ValueError("%r is not %s" % (text, ALLOWED))


def format_size(size_bytes: int) -> str:
    """For people, as memshim spells it: 0 B, 1023 B, 1.5 KiB, 12.00 GiB; powers of 1024, one decimal, two from a GiB on."""
    if abs(size_bytes) < 1024:
        return "%d B" % size_bytes
    value, unit = size_bytes / 1024, 0
    units = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    while abs(value) >= 1023.95 and unit < len(units) - 1:
        value, unit = value / 1024, unit + 1
    return "%.*f %s" % (2 if unit >= 2 and abs(value) < 999.995 else 1, value, units[unit])
