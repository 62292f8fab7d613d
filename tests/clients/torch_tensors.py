"""PyTorch's tensors as memshim has them: at many moments the live ones are the active blocks of PyTorch's own snapshot, address by address, and lines those of its own history.

usage: torch_tensors.py WAY: train, conv, generate, graphs, mempool, churn, streams, threads, compiled, lines, host or ddp. At each moment `memshim snapshot` looks at this process from
outside; natively nothing is asked, and the same is printed.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

import inner
import mark
import torch
import torch_books as books
from torch import nn

DEVICE = "cuda"
moments = 0


def theirs():
    """Address and (size, innermost line) of each active block, as PyTorch says; the line where its history is on."""
    found = {}
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                frames = [frame for frame in block.get("frames", []) if frame["filename"].endswith(".py")]
                found[block.get("address", address)] = (block["size"], "%s:%d" % (frames[0]["filename"], frames[0]["line"]) if frames else "")
            address += block["size"]
    return found


def ours(report):
    """The same, as memshim says."""
    found = {}
    for segment in report.get("inner_segments", []):
        if segment["device"] < 0:  # the host
            continue
        for block in segment["blocks"]:
            if block["state"] == "live":
                found[int(segment["address"], 16) + block["offset"]] = (block["bytes"], line_of(report, block))
    return found


def line_of(report, block):
    """The innermost line of Python, of a report with names."""
    stack = report["inner_sites"][block["site"]]["stack"] if "site" in block else 0
    while stack:
        stack, row = report["stacks"][stack]
        frame = report["frames"][row]
        if frame["kind"] == "python" and "line" in frame:
            return "%s:%d" % (frame["file"], frame["line"])
    return ""


def look():
    """A moment: what differs is printed."""
    global moments
    moments += 1
    torch.cuda.synchronize()
    if not inner.LIBRARY:
        return
    report = inner.snapshot()
    live = sum(device["live_bytes"] for device in report.get("inner_devices", []))
    mine, own = {at: size for at, (size, _) in ours(report).items()}, {at: size for at, (size, _) in theirs().items()}
    if live != torch.cuda.memory_allocated() or mine != own:
        print("moment", moments, "allocated", torch.cuda.memory_allocated(), "and memshim", live, "differ at", sorted(set(mine.items()) ^ set(own.items()))[:4])


def train():
    """A transformer's layer."""
    model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        loss = model(torch.zeros(4, 16, 64, device=DEVICE)).sum()
        look()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        look()


def conv():
    """A convolutional net, by PyTorch's own kernels."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 32 * 32, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        with torch.backends.cudnn.flags(enabled=False):
            loss = model(torch.zeros(8, 3, 32, 32, device=DEVICE)).sum()
            look()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        look()


def generate():
    """A cache that grows."""
    cache = torch.empty(1, 0, 64, device=DEVICE)
    for word in range(50):
        cache = torch.cat([cache, torch.zeros(1, 16, 64, device=DEVICE)], 1)
        if word % 5 == 0:
            look()


def graphs():
    """A graph with its private pool."""
    given, graph = torch.zeros(1 << 16, device=DEVICE), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = given * 2
        made = (doubled + 1).relu()
    look()
    graph.replay()
    look()
    del doubled
    look()
    del made
    del graph
    look()


def mempool():
    """A pool of the program's."""
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept = [torch.empty(1 << 16, device=DEVICE) for _ in range(9)]
        look()
        del kept[::2]
        look()
    beside = torch.empty(1 << 20, device=DEVICE)
    look()
    del kept
    del pool
    look()
    del beside


def churn():
    """Sizes of all kinds, in no order."""
    chosen, kept = random.Random(1), {}
    for turn in range(2000):
        name = chosen.randrange(200)
        if kept.pop(name, None) is None:
            kept[name] = torch.empty(chosen.choice([1, 100, 5000, 100000, 3000000]), device=DEVICE)
        if turn % 200 == 0:
            look()
    torch.cuda.empty_cache()
    look()


def streams():
    """Tensors that another stream uses."""
    other, kept = torch.cuda.Stream(), []
    for turn in range(20):
        given = torch.empty(1 << 16, device=DEVICE)
        given.record_stream(other)
        with torch.cuda.stream(other):
            kept.append(torch.empty(1 << 14, device=DEVICE))
        del given
        if turn % 4 == 0:
            look()


def threads():
    """Four threads, at rest at each moment."""
    kept = [None] * 4

    def work(number):
        chosen, kept[number] = random.Random(number), {}
        for _ in range(300):
            name = chosen.randrange(40)
            if kept[number].pop(name, None) is None:
                kept[number][name] = torch.empty(chosen.choice([10, 1000, 70000]), device=DEVICE)

    for _ in range(4):
        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        look()


def compiled():
    """By torch.compile, which traces and then calls."""
    double = torch.compile(lambda x: (x * 2 + 1).relu(), backend="aot_eager")
    for turn in range(4):
        made = double(torch.zeros(1000 * (turn + 1), device=DEVICE))
        look()
        del made


def lines():
    """The innermost line of each live tensor, against PyTorch's history."""
    torch.cuda.memory._record_memory_history(max_entries=100000)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    kept = [torch.zeros(100 + turn, device=DEVICE) for turn in range(40)]
    for _ in range(2):
        model(torch.zeros(4, 64, device=DEVICE)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    look()
    if inner.LIBRARY:
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "named.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(inner.snapshot(), file)
            mine, own = ours(inner.ask("symbolize", path)), theirs()
        same = [address for address in own if mine.get(address, (0, None))[1] == own[address][1]]
        other = [(own[address][1], mine.get(address, (0, None))[1]) for address in own if own[address][1] and mine.get(address, (0, None))[1] != own[address][1]]
        unknown = [address for address in own if not own[address][1]]
        print("note", len(own), "tensors,", len(same), "of the same line,", len(unknown), "of none by PyTorch; others:", sorted(set(other))[:6])
        if len(same) + len(unknown) < 0.99 * len(own):
            print("of", len(own), "tensors", len(same), "have the same line")
    del kept


def host():
    """Tensors in pageable memory of the host: beyond what PyTorch had, to the byte."""
    from torch.utils.data import DataLoader, TensorDataset

    kept, first, chosen = {}, None, random.Random(3)
    data = DataLoader(TensorDataset(torch.zeros(64, 1000)), batch_size=16)
    for turn in range(6):
        look()
        if inner.LIBRARY:
            live, count = inner.figures(inner.snapshot(), "PyTorch on the host")[:2]
            first = first or (live, count)
            own = (sum(tensor.untyped_storage().nbytes() for tensor in kept.values()), len(kept))
            if (live - first[0], count - first[1]) != own:
                print("turn", turn, "memshim", live - first[0], count - first[1], "and the tensors", own)
        for _ in range(200):
            name = chosen.randrange(60)
            if kept.pop(name, None) is None:
                kept[name] = torch.empty(chosen.choice([1, 100, 5000, 300000]))
        for batch, in data:
            batch.to(DEVICE)
        del batch
    kept.clear()


def launch():
    """Two ranks, a process each, and no device here; says what each said."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, os.path.abspath(__file__), "ddp", os.path.join(place, "store")]
        started = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(2)]
        for process in started:
            sys.stdout.write(process.communicate()[0])
    sys.exit(max(abs(process.returncode) for process in started))


def ddp():
    """A rank of DistributedDataParallel: its buckets, gradients as views of them, and a model that has parameters without a gradient."""
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    rank = int(sys.argv[3])
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    distributed.init_process_group("nccl", init_method="file://" + sys.argv[2], world_size=2, rank=rank, device_id=device)
    for views in (False, True):
        model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(6)]).to(device)
        look()
        parallel = DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=1, gradient_as_bucket_view=views)
        optimizer = torch.optim.Adam(parallel.parameters())
        look()
        for _ in range(3):
            loss = parallel(torch.zeros(4 + rank, 256, device=device)).sum()
            look()
            loss.backward()
            look()
            optimizer.step()
            optimizer.zero_grad()
            look()
        del loss, optimizer, parallel, model
    look()
    distributed.barrier()
    print("rank", rank, torch.cuda.max_memory_allocated(), "bytes at most", moments, "moments")
    mark.leaks("rank %d, the handles of cuBLAS and a pinned word of the reducer" % rank, torch.cuda.memory_reserved() + 2 * books.HANDLE_BYTES + 8)
    distributed.destroy_process_group()


if sys.argv[1:] == ["ddp"]:
    launch()
HANDLES = {"train": 2, "conv": 2, "lines": 2}  # cuBLAS's, of the threads that multiply

globals()[sys.argv[1]]()
if sys.argv[1] == "threads":  # how much they took depends on who met whom
    torch.cuda.empty_cache()
if sys.argv[1] == "ddp":
    sys.exit(0)
mark.leaks("the cache, and the handles of cuBLAS", torch.cuda.memory_reserved() + HANDLES.get(sys.argv[1], 0) * books.HANDLE_BYTES)
print(sys.argv[1], moments, "moments", *([] if sys.argv[1] == "threads" else [torch.cuda.max_memory_allocated(), "bytes at most"]))
