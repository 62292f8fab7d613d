"""A page of `memshim html`, read by its documented format (docs/user/html.md), for the tests.

Usage: page_format.py PAGE REPORT...    checks the page's structure, and every figure in it against the reports
"""

import base64
import hashlib
import html.parser
import json
import re
import struct
import sys
import zlib

VALUES = {"peak": "at_peak_bytes", "live": "live_bytes", "total": "total_bytes", "count": "total_count", "rounding": "rounding_bytes"}
SAME = ("id", "live_count", "max_bytes", "freed_count", "first_ns", "last_ns", "lifetime_ns_sum", "requested_bytes")
ELEMENTS = {"html", "head", "meta", "link", "title", "style", "body", "header", "h1", "span", "div", "nav", "main", "p", "noscript", "script"}


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text of its blocks, script and style."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.blocks, self.index, self.inside = [], [], None, None
        self.kept = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = dict(attrs).get("class") if tag == "div" else tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in self.kept:
            self.kept[self.inside].append(data)
        elif self.inside == "report":
            self.blocks.append(zlib.decompress(base64.b64decode(data, validate=True)))
        elif self.inside == "index":
            self.index = json.loads(zlib.decompress(base64.b64decode(data, validate=True)))


def unpack(block):
    """Head and columns of a report's block."""
    assert block[:4] == b"MSH1", block[:4]
    length = struct.unpack("<I", block[4:8])[0]
    head, at, columns = json.loads(block[8:8 + length]), 8 + length, {}
    for name, size, count in head["columns"]:
        planes = [block[at + size_at * count:at + (size_at + 1) * count] for size_at in range(size)]
        columns[name] = [int.from_bytes(bytes(row), "little", signed=size == 8) for row in zip(*planes)]
        assert len(columns[name]) == count, name
        at += size * count
    assert at == len(block), (at, len(block))
    return head, columns


def exact(value):
    """A figure as the head has it: a string of digits beyond 2^53."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return str(value) if abs(value) >= 1 << 53 else value


def copied(value):
    """... of anything in a report."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items() if key not in ("stack_text", "owner")}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return exact(value)


def check_policy(page):
    """What the page may do is said by hashes of what is in it, and nothing else is."""
    policies = [attrs["content"] for tag, attrs in page.elements if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1, policies
    for kind, texts in page.kept.items():
        assert len(texts) == 1, (kind, len(texts))
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policies[0], kind
    assert policies[0].startswith("default-src 'none'; base-uri 'none'; form-action 'none'; "), policies[0]
    for tag, attrs in page.elements:
        assert tag in ELEMENTS, tag
        assert not [name for name in attrs if name.startswith("on") or name in ("src", "style", "srcdoc")], (tag, attrs)
        assert attrs.get("href", "data:,") == "data:,", attrs


def check_report(block, report):
    """Every figure, and every total of the tree."""
    head, columns = unpack(block)
    sites = report["sites"]
    for name, key in [*VALUES.items(), *((key, key) for key in SAME)]:
        assert columns[f"site.{name}"] == [site.get(key, 0) for site in sites], name
    leaks = {}
    for leak in report["leaks"]:
        if leak["class"] not in ("suppressed", "cache"):
            leaks[leak["site"]] = leaks.get(leak["site"], 0) + leak["bytes"]
    assert columns["site.leaked"] == [leaks.get(site["id"], 0) for site in sites]
    assert [head["strings"][i] for i in columns["leak.class"]] == [leak["class"] for leak in report["leaks"]]
    assert columns["time.moment"] == report["timeline"].get("moments", [])
    assert [list(row) for row in zip(columns["held.site"], columns["held.moment"], columns["held.bytes"])] == [
        [i, *held] for i, site in enumerate(sites) for held in site.get("held", [])]
    for i, series in enumerate(report["timeline"]["devices"]):
        for key in ("live", "reserved", "limbo"):
            assert columns[f"time.{i}.{key}"] == series[key], key
    blocks = [block for segment in report["segments"] for block in segment["blocks"]]
    assert columns["segment.address"] == [int(segment["address"], 16) for segment in report["segments"]]
    for key in ("offset", "bytes"):
        assert columns[f"block.{key}"] == [block[key] for block in blocks], key
    assert [head["strings"][i] for i in columns["block.state"]] == [block["state"] for block in blocks]
    parents = columns["node.parent"]
    assert all(parent < node for node, parent in enumerate(parents) if node), "a parent precedes its children"
    assert all(0 < node < len(parents) for node in columns["site.node"])
    for key in ("run", "config", "devices", "phases", "oom", "overhead", "balances", "contexts"):
        if key in report:
            told, is_told = copied(head[key]), copied(report[key])
            if key == "run":  # the command resolves names, and tells the view
                told = {name: value for name, value in told.items() if name in is_told}
                told["symbolized"] = is_told["symbolized"]
            if key in ("oom", "contexts"):
                assert all("stack_text" in row for row in head[key] if "stack" in row)
            assert told == is_told, (key, told, is_told)
    check_job(head, report)
    return head


def check_job(head, report):
    """Of a job report: its figures, owners, phases and who stands out, those of 20 with most."""
    job, ranks = report.get("job"), report.get("ranks")
    if not job:
        assert "job" not in head, head["job"]
        return
    who = ["%s %d on %s" % ("rank" if "rank" in rank else "process", rank.get("rank", rank["pid"]), rank["host"]) for rank in ranks]
    told = head["job"]
    assert (told["processes"], told["shown"]) == (job["processes"], who[job["shown"]]), told
    assert [[row["min"], row["median"], row["max"], row["who"]] for row in told["figures"]] == [
        [exact(job["figures"][key][which]) for which in ("min", "median", "max")] + [who[job["figures"][key]["max_process"]]]
        for key in ("peak_bytes", "live_bytes", "leaked_bytes", "reserved_bytes", "growth_bytes")], told["figures"]
    for name, word, key in (("owners", "owner", "at_peak_bytes"), ("phases", "name", "peak_bytes")):
        rows = sorted(job[name], key=lambda row, of=key: -row[of]["max"])[:20]
        assert told[name] == [{"name": row[word], **{which: exact(row[key][which]) for which in ("min", "median", "max")}, "who": who[row[key]["max_process"]]} for row in rows], told[name]
        assert told[name + "_found"] == len(job[name])
    names = {key: row["name"] for key, row in zip(("peak_bytes", "live_bytes", "leaked_bytes", "reserved_bytes", "growth_bytes"), told["figures"])}
    assert [[row[key] for key in ("who", "figure", "value", "median", "site")] for row in told["outliers"]] == [
        [who[row["process"]], names[row["figure"]], exact(row["value"]), exact(row["median"]), job["sites"][row["site"]]["at"] if "site" in row else ""] for row in job["outliers"][:20]]
    assert told["outliers_found"] == job["outliers_found"]


def main():
    """See above."""
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    page = Page(text)
    check_policy(page)
    assert len(page.blocks) == len(page.index) == len(sys.argv) - 2, (len(page.blocks), page.index)
    for path, block, line in zip(sys.argv[2:], page.blocks, page.index):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        head = check_report(block, report)
        assert head["path"] == line["path"] == path
        assert line["peak_live_bytes"] == max([0, *(device["peak_live_bytes"] for device in report["devices"])]), line
    assert not re.search(r"[^\t\n\r\x20-\x7e]", re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.S)), "something is in the page as it was"


if __name__ == "__main__":
    main()
