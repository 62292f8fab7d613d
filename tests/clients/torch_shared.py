"""Tensors of one process in others: torch.multiprocessing hands them over by CUDA IPC (legacy handles, or file descriptors with expandable segments); and pinned memory."""
import contextlib
import gc
import io

import mark
import torch
import torch.multiprocessing as multiprocessing
import torch_books as books

DEVICE = "cuda"


def use(number, inbox, outbox):
    """A process that is handed tensors: reads them, writes one, and says what it saw."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        first, second = inbox.get()
        print("reader", number, tuple(first.shape), tuple(second.shape), first[:3].cpu().tolist(), second[-2:].cpu().tolist())
        second[number : number + 1].copy_(torch.tensor([100.0 + number]))
        own = torch.empty(5 << 20, device=DEVICE)
        torch.cuda.synchronize()
        mark.live("reader %d" % number, torch.cuda.memory_reserved())
        del first, second, own
        books.forget()
    outbox.put(said.getvalue())
    inbox.get()


def main():
    """All of it."""
    multiprocessing.set_start_method("spawn")
    first = torch.arange(1000, dtype=torch.float32).to(DEVICE)
    second = torch.arange(1 << 20, dtype=torch.float32).to(DEVICE)
    inboxes, outbox = [multiprocessing.Queue() for _ in range(2)], multiprocessing.Queue()
    for number, inbox in enumerate(inboxes):
        reader = multiprocessing.Process(target=use, args=(number, inbox, outbox))
        reader.start()
        inbox.put((first, second))
        print(outbox.get(), end="")
        inbox.put(None)
        reader.join()
        print("reader", number, "ended with", reader.exitcode, "wrote", second[number : number + 1].cpu().tolist())
    pinned = torch.arange(300000, dtype=torch.float32).pin_memory()
    back = torch.empty_like(pinned).pin_memory()
    back.copy_(pinned.to(DEVICE, non_blocking=True), non_blocking=True)
    torch.cuda.synchronize()
    print("pinned", pinned.is_pinned(), bool((back == pinned).all()))
    print(books.counters(), books.segments())
    mark.live("sender", books.live(0))
    del first, second, pinned, back, inboxes, outbox
    gc.collect()
    torch.cuda.ipc_collect()
    books.forget()
    print("end", books.counters(), books.segments())
    mark.live("end", books.live(0))
    mark.leaks("pinned memory that PyTorch keeps", torch.cuda.host_memory_stats()["allocated_bytes.current"])


if __name__ == "__main__":
    main()
