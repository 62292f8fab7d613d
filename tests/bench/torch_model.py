"""scripts/bench torch: the model of PyTorch's allocator (src/cli/torch/torch.h) beside the allocator of the wheel. docs/internals/bench.md says how to read it.

Each trace is replayed by both with each of the settings, on a device with room to spare and on one that is a tenth larger than what is live at most. off_percent is by how much the
model is wrong of what was reserved at most; the bench fails where that is more than one part of a hundred, or where one of them gets through on a device and the other does not.
"""

import os
import subprocess
import sys
import tempfile

import allocators

SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:64", "max_split_size_mb:256", "roundup_power2_divisions:4", "roundup_power2_divisions:[64:8,256:4,>:1]",
            "large_segment_size_mb:64", "expandable_segments:True,large_segment_size_mb:64", "garbage_collection_threshold:0.6,per_process_memory_fraction:0.9"]
MOST_OFF = 1.0


def told(options, trace, settings, capacity):
    """What the model says."""
    done = subprocess.run([os.path.join(options.build, "tests/tune/torch_model"), trace, settings, str(capacity)], capture_output=True, text=True, check=True)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def rows_of(options, peer, trace, name, settings):
    """A row for each device."""
    live = allocators.live_peak(trace)
    for device, memory in (("roomy", max(8 * live, allocators.AMPLE)), ("tight", live * 11 // 10 // allocators.GRANULE * allocators.GRANULE)):
        real = peer.run(options, ["replay", trace], {"MEMSIM_MEMORY": str(memory), "MEMSIM_COUNT": "1", "PYTORCH_ALLOC_CONF": settings}, 300)
        if not real:
            sys.exit(f"{name}: the allocator of the wheel does not run")
        model = told(options, trace, settings, memory)
        off = 100 * (model["reserved_peak_bytes"] / real["reserved_peak_bytes"] - 1) if real["reserved_peak_bytes"] else 0
        yield {"trace": name, "settings": settings or "none", "device": device, "live_peak_bytes": live, "reserved_peak_bytes": int(real["reserved_peak_bytes"]),
               "told_bytes": model["reserved_peak_bytes"], "off_percent": round(off, 2), "completed": bool(real["completed"]), "told_completed": bool(model["completed"])}


def bench_torch(options):
    """Each trace with each of the settings."""
    peer = next(tool for tool in allocators.peers(options) if tool.name == "torch-native")
    rows = []
    for path in allocators.traces_of(options):
        with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".trace") as plain, allocators.opened(path, options) as text:
            plain.writelines(text)
            plain.flush()
            for settings in SETTINGS:
                rows += rows_of(options, peer, plain.name, allocators.trace_name(path), settings)
    return rows


def is_wrong(rows):
    """True where the model is off by more than it may be."""
    return any(abs(row["off_percent"]) > MOST_OFF or row["completed"] != row["told_completed"] for row in rows)
