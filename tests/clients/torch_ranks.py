"""Ranks of PyTorch's NCCL groups, a process each: torch_ranks.py RANKS. Data that was copied to the device is really exchanged, and is compared; memory from ncclMemAlloc too.

The first process starts the others, hears them out in order, and uses no device itself.
"""
import os
import subprocess
import sys
import tempfile


def launch(ranks):
    """Starts them all; says what each said."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, os.path.abspath(__file__), str(ranks), os.path.join(place, "store")]
        started = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
        for process in started:
            sys.stdout.write(process.communicate()[0])
    return max(abs(process.returncode) for process in started)


def on_device(values, device):
    """A copy, which the simulated GPU really makes."""
    import torch

    return torch.tensor(values, dtype=torch.float32).to(device)


def collectives(rank, ranks, device):
    """Each with what has to come of it."""
    import torch
    from torch import distributed

    everyone = sum(range(1, ranks + 1))
    x = on_device([rank + 1.0] * 5000, device)
    distributed.all_reduce(x)
    assert x.cpu().tolist() == [float(everyone)] * 5000, "the sum is wrong"
    gathered = torch.empty(ranks * 300, device=device)
    distributed.all_gather_into_tensor(gathered, on_device([float(rank)] * 300, device))
    assert gathered.cpu().tolist() == [float(r) for r in range(ranks) for _ in range(300)], "what was gathered is wrong"
    part = torch.empty(100, device=device)
    distributed.reduce_scatter_tensor(part, on_device([float(i // 100) for i in range(100 * ranks)], device))
    assert part.cpu().tolist() == [float(rank * ranks)] * 100, "what was scattered is wrong"
    y = on_device([float(rank)] * 10, device)
    distributed.broadcast(y, 1)
    assert y.cpu().tolist() == [1.0] * 10, "what was broadcast is wrong"
    if rank < 2:
        (distributed.send if rank == 0 else distributed.recv)(y, 1 - rank)
    half = distributed.new_group([r for r in range(ranks) if r % 2 == 0])
    if rank % 2 == 0:
        distributed.all_reduce(y, group=half)
        assert y.cpu().tolist() == [1.0 * ((ranks + 1) // 2)] * 10, "the sum of half of them is wrong"
    distributed.barrier()
    return len(gathered)


def pool_of_nccl(rank, ranks, device):
    """Tensors in memory of NCCL's own, registered with it."""
    import torch
    from torch import distributed

    backend = distributed.group.WORLD._get_backend(device)
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = torch.empty(3 << 20, device=device)
        small = torch.empty(100, device=device)
    x.copy_(torch.full((3 << 20,), float(rank)))
    backend.register_mem_pool(pool)
    distributed.all_reduce(x)
    torch.cuda.synchronize()
    backend.deregister_mem_pool(pool)
    assert x.cpu()[[0, -1]].tolist() == [float(sum(range(ranks)))] * 2, "the sum in NCCL's memory is wrong"
    sizes = sorted(segment["total_size"] for segment in pool.snapshot())
    return sizes, x, small, pool


def rank_main(ranks, store, rank):
    """A rank."""
    import mark
    import torch
    import torch_books as books
    from torch import distributed

    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    distributed.init_process_group("nccl", init_method="file://" + store, world_size=ranks, rank=rank, device_id=device)
    print("rank", rank, "of", ranks, "gathers", collectives(rank, ranks, device), books.counters(), books.segments())
    mark.live("rank %d collectives" % rank, torch.cuda.memory_reserved())
    sizes, x, small, pool = pool_of_nccl(rank, ranks, device)
    print("rank", rank, "pool of NCCL's", sizes, books.counters(), books.segments())
    mark.live("rank %d pool of NCCL's" % rank, torch.cuda.memory_reserved())
    del x, small, pool
    books.forget()
    print("rank", rank, "end", books.counters(), books.segments())
    mark.live("rank %d end" % rank, torch.cuda.memory_reserved())
    mark.leaks("rank %d at the end" % rank, torch.cuda.memory_reserved())
    distributed.destroy_process_group()


if len(sys.argv) == 2:
    sys.exit(launch(int(sys.argv[1])))
rank_main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
