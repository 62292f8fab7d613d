"""Readers of the formats that `memshim export` writes, each by the format's own rules and by nothing of memshim's.

A reader takes the bytes of a file, complains (AssertionError) of whatever the format's documentation forbids, and answers with what the file says:
`stacks`, a list of (frames from the root to the leaf, {value: number}), or what else the format has.
"""
import csv
import gzip
import io
import json
import pickle
import pickletools
import re


def folded(data):
    """FlameGraph: "a;b;c N", N a natural number; no control character but the ends of lines."""
    stacks = []
    text = data.decode("utf-8")
    assert not text or text.endswith("\n")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    for line in text.split("\n")[:-1]:
        names, weight = re.fullmatch(r"(.+) (\d+)", line).groups()
        assert all(names.split(";")), line
        stacks.append((names.split(";"), {"folded": int(weight)}))
    return stacks


SPEEDSCOPE = {  # file-format-spec.ts of speedscope, as a JSON Schema: what sampled profiles may hold
    "type": "object", "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"}, "name": {"type": "string"}, "exporter": {"type": "string"},
        "activeProfileIndex": {"type": "integer", "minimum": 0},
        "shared": {"type": "object", "required": ["frames"], "properties": {"frames": {"type": "array", "items": {
            "type": "object", "required": ["name"], "additionalProperties": False,
            "properties": {"name": {"type": "string"}, "file": {"type": "string"}, "line": {"type": "number"}, "col": {"type": "number"}}}}}},
        "profiles": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
            "properties": {
                "type": {"const": "sampled"}, "name": {"type": "string"}, "startValue": {"type": "number"}, "endValue": {"type": "number"},
                "unit": {"enum": ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]},
                "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
                "weights": {"type": "array", "items": {"type": "number", "minimum": 0}}}}}}}


def speedscope(data):
    import jsonschema
    root = json.loads(data)
    jsonschema.validate(root, SPEEDSCOPE)
    frames = root["shared"]["frames"]
    assert root["activeProfileIndex"] < len(root["profiles"])
    stacks = []
    for profile in root["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        stacks += [([frames[number]["name"] for number in sample], {profile["name"]: weight})
                   for sample, weight in zip(profile["samples"], profile["weights"])]
    return stacks


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        assert shift <= 70
        if byte < 0x80:
            return value, at


def message(data):
    """The fields of a protocol buffer: {number: [values]}."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value = data[at:at + size]
            assert len(value) == size
            at += size
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def packed(values):
    numbers = []
    for data in values:
        at = 0
        while at < len(data):
            number, at = varint(data, at)
            numbers.append(number)
    return numbers


def pprof(data):
    """profile.proto with the rules of Profile.CheckValid. Answers (stacks, the type that is shown first)."""
    root = message(gzip.decompress(data))
    strings = [text.decode("utf-8") for text in root[6]]
    assert strings[0] == ""
    types = [(strings[kind[1][0]], strings[kind[2][0]]) for kind in map(message, root[1])]
    functions = {}
    for function in map(message, root.get(5, [])):
        assert function[1][0] and function[1][0] not in functions
        functions[function[1][0]] = strings[function[2][0]]
    mappings = {mapping[1][0]: (mapping[2][0], mapping[3][0]) for mapping in map(message, root.get(3, []))}
    assert len(mappings) == len(root.get(3, [])) and 0 not in mappings
    locations = {}
    for location in map(message, root.get(4, [])):
        assert location[1][0] and location[1][0] not in locations
        if 2 in location:
            begin, end = mappings[location[2][0]]
            assert begin <= location[3][0] < end
        locations[location[1][0]] = functions[message(location[4][0])[1][0]]
    stacks = []
    for sample in map(message, root.get(2, [])):
        values = packed(sample[2])
        assert len(values) == len(types)
        for label in map(message, sample.get(3, [])):
            assert strings[label[1][0]] and strings[label[2][0]]
        stacks.append(([locations[number] for number in reversed(packed(sample[1]))], {kind[0]: value for kind, value in zip(types, values)}))
    return stacks, strings[root[14][0]]


def chrome(data):
    """Trace events. Answers {"counters": {name: [(us, args)]}, "slices": [(category, name, begin, end, args)], "instants": [...], "open": n}."""
    root = json.loads(data)
    told = {"counters": {}, "slices": [], "instants": [], "open": 0}
    begun = {}
    for event in root["traceEvents"]:
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int) and event["ts"] >= 0
        if event["ph"] == "C":
            assert event["args"] and all(isinstance(value, (int, float)) for value in event["args"].values())
            told["counters"].setdefault(event["name"], []).append((event["ts"], event["args"]))
        elif event["ph"] == "b":
            key = (event["cat"], event["id"])
            assert key not in begun, key
            begun[key] = event
        elif event["ph"] == "e":
            begin = begun.pop((event["cat"], event["id"]))
            assert begin["name"] == event["name"] and begin["ts"] <= event["ts"]
            told["slices"].append((event["cat"], event["name"], begin["ts"], event["ts"], begin["args"]))
        elif event["ph"] in "in":
            assert event["ph"] == "n" or event["s"] in "gpt"
            told["instants"].append((event["cat"], event["name"], event["ts"], event["args"]))
        else:
            assert event["ph"] == "M" and event["name"] == "process_name" and isinstance(event["args"]["name"], str), event
    told["open"] = len(begun)
    frames = root.get("stackFrames", {})
    for event in root["traceEvents"]:
        names, at = [], event.get("sf")
        while at is not None:
            names.append(frames[at]["name"])
            at = frames[at].get("parent")
        assert not names or " < ".join(names) == event["args"]["stack"], event
    for row in told["counters"].values():
        assert [at for at, _ in row] == sorted(at for at, _ in row)
    return told


TABLES = {"stackTable": ("prefix", "frame"), "sources": ("id", "filename", "startLine", "startColumn", "sourceMapURL"),
          "frameTable": ("func", "line", "column", "address", "inlineDepth", "category", "subcategory", "nativeSymbol", "innerWindowID"),
          "funcTable": ("name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"),
          "resourceTable": ("lib", "name", "host", "type"), "nativeSymbols": ("libIndex", "address", "name", "functionSize")}


def columns(table, names):
    """A table of the Firefox profiler: all columns are there, each as long as the table says."""
    assert set(table) == {"length", *names}, table.keys()
    assert all(len(table[name]) == table["length"] for name in names)
    return table


def firefox(data):
    """The processed profile format, version 62. Answers (stacks, {counter: [(ms, value)]}, markers)."""
    root = json.loads(data)
    meta, shared = root["meta"], root["shared"]
    assert meta["preprocessedProfileVersion"] == 62 and meta["version"] == 24 and meta["categories"] and meta["interval"] > 0 and meta["startTime"] >= 0
    tables = {name: columns(shared[name], names) for name, names in TABLES.items()}
    strings = shared["stringArray"]
    assert len(set(strings)) == len(strings)
    frames, functions, prefixes = tables["frameTable"], tables["funcTable"], tables["stackTable"]["prefix"]
    assert all(prefix is None or 0 <= prefix < number for number, prefix in enumerate(prefixes))
    assert all(source is None or strings[tables["sources"]["filename"][source]] for source in functions["source"])

    def names(stack):
        found = []
        while stack is not None:
            found.append(strings[functions["name"][frames["func"][tables["stackTable"]["frame"][stack]]]])
            stack = prefixes[stack]
        return found[::-1]

    stacks, counters, markers = [], {}, []
    assert len({thread["tid"] for thread in root["threads"]}) == len(root["threads"]) and isinstance(root["threads"][0]["pid"], str)
    for thread in root["threads"]:
        samples = thread["samples"]
        assert samples["weightType"] in ("bytes", "samples") and all(delta >= 0 for delta in samples["timeDeltas"])
        assert len(samples["stack"]) == len(samples["weight"]) == len(samples["timeDeltas"]) == samples["length"]
        stacks += [(names(stack), {thread["name"]: weight}) for stack, weight in zip(samples["stack"], samples["weight"])]
        told = columns(thread["markers"], ("name", "startTime", "endTime", "phase", "data", "category"))
        for number in range(told["length"]):
            assert (told["endTime"][number] is None) == (told["phase"][number] == 0) and told["data"][number]["type"] == "Text"
            assert told["phase"][number] == 0 or told["endTime"][number] >= told["startTime"][number]
            markers.append((strings[told["name"][number]], told["data"][number]["name"]))
    for counter in root["counters"]:
        samples, at, value, row = counter["samples"], 0, 0, []
        assert len(samples["count"]) == len(samples["timeDeltas"]) == samples["length"]
        for delta, rise in zip(samples["timeDeltas"], samples["count"]):
            at, value = at + delta, value + rise
            row.append((at, value))
        counters[counter["name"]] = row
    return stacks, counters, markers


def dhat(data):
    """DHAT, version 2: what dh_view.js wants to be there, and that what is held is no more than what was allocated."""
    root = json.loads(data)
    assert root["dhatFileVersion"] == 2 and root["bklt"] is True and root["bkacc"] is False
    for key, kind in (("mode", str), ("verb", str), ("tu", str), ("Mtu", str), ("cmd", str), ("tuth", int), ("pid", int), ("te", int), ("tg", int)):
        assert isinstance(root[key], kind), key
    assert root["ftbl"][0] == "[root]" and all(isinstance(name, str) for name in root["ftbl"])
    stacks = []
    for point in root["pps"]:
        for key in ("tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk"):
            assert isinstance(point[key], int) and point[key] >= 0, key
        for held, blocks in (("mb", "mbk"), ("gb", "gbk"), ("eb", "ebk")):
            assert point[blocks] <= point["tbk"] and (point[held] == 0 or point[blocks] > 0), point
        names = [root["ftbl"][number] for number in reversed(point["fs"])]
        stacks.append(([re.sub(r"^0x[0-9A-F]+: (.*) \(.*\)$", r"\1", name) for name in names], {key: point[key] for key in ("tb", "tbk", "gb", "eb")}))
    return stacks


OPCODES = set("PROTO STOP MARK EMPTY_DICT EMPTY_LIST TUPLE2 APPENDS SETITEMS BININT BININT1 BININT2 LONG1 BINUNICODE NEWTRUE NEWFALSE "
              "LONG_BINPUT LONG_BINGET".split())  # of those that MemoryViz.js reads, what is used


def snapshot(data):
    """A memory_viz snapshot: only opcodes that MemoryViz.js reads, blocks that tile their segments, and events that it can follow back from the end."""
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name in OPCODES, opcode.name
        assert opcode.name != "PROTO" or 2 <= argument <= 4
        assert not isinstance(argument, int) or -(1 << 63) <= argument < 1 << 63
    root = pickle.loads(data)
    ranges, live = [], {}
    for segment in root["segments"]:
        at = segment["address"]
        sizes = {"active_allocated": 0, "active_pending_free": 0, "inactive": 0}
        for block in segment["blocks"]:
            assert block["address"] == at and block["size"] > 0 and 0 <= block["requested_size"] <= block["size"]
            at += block["size"]
            sizes[block["state"]] += block["size"]
            for frame in block["frames"]:
                assert isinstance(frame["name"], str) and isinstance(frame["filename"], str) and isinstance(frame["line"], int)
            if block["state"] == "active_allocated":
                live[(segment["device"], block["address"])] = block["size"]
        assert at == segment["address"] + segment["total_size"] and segment["segment_type"] in ("small", "large")
        assert segment["allocated_size"] == sizes["active_allocated"]
        assert segment["active_size"] == sizes["active_allocated"] + sizes["active_pending_free"]
        assert segment["requested_size"] == sum(block["requested_size"] for block in segment["blocks"])
        ranges.append((segment["address"], at))
    ranges.sort()
    assert all(one[1] <= two[0] for one, two in zip(ranges, ranges[1:])), "segments overlap"
    for device, trace in enumerate(root["device_traces"]):
        follow(device, trace, live, [list(pair) for pair in ranges])
    return root


def follow(device, trace, at_end, segments):
    """From the first event to the last: what is live then is what the segments say, but for what was there before the first."""
    live, own, asked = {}, {}, set()
    assert [entry["time_us"] for entry in trace] == sorted(entry["time_us"] for entry in trace)
    for entry in trace:
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action == "segment_alloc":
            assert address not in own and not any(begin < address + size and address < end for begin, end in segments)
            own[address] = size
        elif action == "alloc":
            assert address not in live and (own.get(address, 0) >= size or any(begin <= address and address + size <= end for begin, end in segments))
            live[address] = size
        elif action == "free_requested":
            assert live[address] == size
            asked.add(address)
        elif action == "free_completed":
            asked.remove(address)
            assert live.pop(address) == size
        elif action == "segment_free":
            assert own.pop(address) == size and address not in live
        else:
            assert action == "oom" and entry["device_free"] >= 0, action
    assert not own and not asked and all(at_end[(device, address)] == size for address, size in live.items())


LABELS = re.compile(r'(?:([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)")(?:,|$)')


def metrics(data, openmetrics):
    """The text formats of Prometheus: {name of a series: {labels: value}}; families are not interleaved, and no series is there twice."""
    lines = data.decode("utf-8").split("\n")
    assert lines.pop() == ""
    if openmetrics:
        assert lines.pop() == "# EOF"
    families, series, current = {}, {}, None
    for line in lines:
        if line.startswith("# "):
            _, what, name, text = line.split(" ", 3)
            assert what in ("HELP", "TYPE", "UNIT") and what not in families.get(name, {}), line
            assert name == current or name not in families, "interleaved: " + line
            current = name
            families.setdefault(name, {})[what] = text
            assert what != "UNIT" or (openmetrics and name.endswith("_" + text)), line
            continue
        name, labels, value = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (-?\d+)", line).groups()
        counter = families[current]["TYPE"] == "counter"
        assert families[current]["HELP"] and families[current]["TYPE"] in ("counter", "gauge")
        assert name == current + ("_total" if counter and openmetrics else "") and name.endswith("_total") == counter, line
        found, rest = [], labels
        while rest:
            match = LABELS.match(rest)
            assert match, line
            found.append((match.group(1), re.sub(r"\\(.)", lambda escape: "\n" if escape.group(1) == "n" else escape.group(1), match.group(2))))
            rest = rest[match.end():]
        assert len(dict(found)) == len(found)
        assert tuple(found) not in series.setdefault(name, {}), "twice: " + line
        series[name][tuple(found)] = int(value)
    return series


def table(data, lines):
    """CSV (RFC 4180), or an object on each line: rows as dicts, numbers as such."""
    if lines:
        rows = [json.loads(line) for line in data.decode("utf-8").split("\n")[:-1]]
        kinds = [{key: type(value) for key, value in row.items()} for row in rows]
        assert all(list(kind.items()) == list(kinds[0].items()) for kind in kinds)
        return rows
    text = data.decode("utf-8")
    assert text.endswith("\r\n") and not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
    csv.field_size_limit(1 << 30)
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert all(len(row) == len(rows[0]) for row in rows) and len(rows) == text.count("\r\n"), "a row is a line"
    for row in rows[1:]:
        for field in row:
            assert not field or field[0] not in "=+-@", "a formula: " + field
    return [dict(zip(rows[0], row)) for row in rows[1:]]
