"""What a page quotes of a command is what it prints."""
import os

DOCS = os.path.join(os.environ["top_srcdir"], "docs", "user")


def block_of(page, command):
    """The lines of a page's block that begins with this command, without it."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        lines = file.read().splitlines()
    at, block = lines.index("    $ " + command) + 1, []
    while lines[at].startswith("    ") or (not lines[at] and lines[at + 1].startswith("    ")):
        block.append(lines[at][4:].rstrip())
        at += 1
    return block


def misquoted(page, command, printed):
    """The first line of the block that is not what was printed there, or "". "..." stands for any lines; the made-up sources have no folder."""
    rest, skips = [line.rstrip() for line in printed.replace("/src/", "").splitlines()], False
    for line in block_of(page, command):
        if line == "...":
            skips = True
            continue
        if line not in (rest if skips else rest[:1]):
            return "%s: %r, where it prints %r" % (page, line, rest[:3])
        rest, skips = rest[rest.index(line) + 1:], False
    return "" if skips or not rest else "%s ends before %r" % (page, rest[0])
