"""Two of PyTorch's processes on one device, each with a part of it: memshim's share where it is there, else PyTorch's own fraction. Each takes tensors until it is refused.

The first process starts the others, tells them line by line what to do, and uses no device itself.
"""
import os
import subprocess
import sys
import tempfile

GIB, PIECE = 1 << 30, 64 << 20
DEVICE = 9 * GIB
# What is kept for each, and the most that it may take. The larger one comes first, and so takes what is nobody's guarantee.
PARTS = {"large": (3 * GIB, 6 * GIB), "small": (2 * GIB, 2 * GIB)}
UNDER = "libmemshim.so" in os.environ.get("LD_PRELOAD", "")


def hear(name, worker):
    """What one says of an order; its figures are the runner's."""
    for line in worker.stdout:
        is_figure = line.startswith("figure")
        print(line if is_figure else name + " " + line, end="", flush=True)
        if not is_figure:
            return


def launch():
    """Both, one after the other; all that they said."""
    with tempfile.TemporaryDirectory() as place:
        workers = {}
        for name, (kept, most) in PARTS.items():
            share = {"MEMSHIM_SHARE": "%dM/%dM" % (kept >> 20, most >> 20)}
            environment = {**os.environ, "MEMSIM_LEDGER": place, "MEMSIM_MEMORY": "%dM" % (DEVICE >> 20), **share}
            workers[name] = subprocess.Popen([sys.executable, os.path.abspath(__file__), name], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            hear(name, workers[name])
        for name, order in (("large", "fill"), ("small", "fill"), ("large", "again"), ("small", "again"), ("small", "end"), ("large", "end")):
            workers[name].stdin.write(order + "\n")
            workers[name].stdin.flush()
            hear(name, workers[name])
        return max(abs(worker.wait()) for worker in workers.values())


def fill(torch):
    """Tensors until there is no memory."""
    held = []
    try:
        while len(held) < DEVICE // PIECE:
            held.append(torch.empty(PIECE, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        return held
    raise RuntimeError("the device has no end")


def work(name):
    """One of them."""
    import mark
    import torch

    most = PARTS[name][1]
    if not UNDER:
        torch.cuda.set_per_process_memory_fraction(most / DEVICE)
    torch.empty(1, device="cuda")
    print("sees its part", torch.cuda.mem_get_info()[1] == (most if UNDER else DEVICE), flush=True)
    held = fill(torch) if sys.stdin.readline() else []
    # Contexts, and what is rounded, are of the part too.
    print("has its part", most - 2 * PIECE <= len(held) * PIECE <= most, flush=True)
    sys.stdin.readline()
    before = len(held)
    del held[:]
    torch.cuda.empty_cache()
    held += fill(torch)
    print("has it again", len(held) == before, flush=True)
    sys.stdin.readline()
    del held[10:]
    torch.cuda.empty_cache()
    mark.live("ten pieces", torch.cuda.memory_reserved())
    del held[:]
    torch.cuda.empty_cache()
    print("gave it back", torch.cuda.memory_allocated(), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1])
    else:
        sys.exit(launch())
