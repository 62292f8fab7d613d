"""Text out of reports, which anybody may have written: shown as what it is, never obeyed."""

import html
import re

# Half of a pair that UTF-16 would need: JSON can spell it, UTF-8 cannot.
_LONE = re.compile("[\ud800-\udfff]")


def sound(text: str) -> str:
    """Text that every encoder takes: U+FFFD in place of lone surrogates, as memshim does with bytes that are
    no UTF-8."""
    return _LONE.sub("\ufffd", text)


def plain(text: str) -> str:
    """Text for a terminal or a picture: what controls, has no width, or changes the direction of writing is
    spelled out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def escaped(text: object) -> str:
    """Text for HTML, in an element or in an attribute."""
    return html.escape(plain(str(text)), quote=True)


def label(text: str) -> str:
    """Text for matplotlib, which reads what stands between dollar signs as a formula."""
    return plain(text).replace("$", r"\$")
