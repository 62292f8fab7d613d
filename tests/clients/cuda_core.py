"""cuda-core: memory resources, which are pools of the driver's: the device's own, some of its own, with a most, shared with a process of its own,
pinned and managed; on several streams and threads, with peers; graphs with memory of their own. Prints what it sees; the same each time."""

import gc
import multiprocessing
import sys
import threading

import mark
import numpy as np
from cuda.bindings import driver
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
)

MIB = 1 << 20


def say(what, *values):
    """One line."""
    print(what, *values, flush=True)


def synchronize():
    """By the driver; Device.sync() asks the runtime that the bindings bring, which needs the vendor's driver."""
    assert driver.cuCtxSynchronize()[0] == 0


def attempt(what, function, *arguments):
    """What becomes of it: the kind of the exception, if any."""
    try:
        function(*arguments)
        say(what, "ok")
    except Exception as error:  # whichever it is, it has to be the same
        say(what, type(error).__name__, str(error).split(":")[0].splitlines()[0][:60])


def walk(resource, streams, seed, steps):
    """How many blocks did not hold what they were filled with."""
    random = np.random.default_rng(seed)
    live, wrong = [], 0
    host = LegacyPinnedMemoryResource().allocate(1 << 16)
    view = np.from_dlpack(host).view(np.uint8)
    for step in range(steps):
        if len(live) < 20 and random.integers(100) < 55:
            stream = streams[random.integers(len(streams))]
            bytes_ = int(random.integers(1, 60000) if random.integers(6) else random.integers(1, 4 * MIB))
            buffer = resource.allocate(bytes_, stream=stream)
            buffer.fill(step % 251, stream=stream)
            live.append((buffer, stream, step % 251))
        elif live:
            buffer, stream, value = live.pop(int(random.integers(len(live))))
            if random.integers(3) == 0 and buffer.size <= host.size:
                view[:] = 255
                other = streams[random.integers(len(streams))]
                if other is not stream:
                    other.wait(stream.record())
                buffer.copy_to(host_part(host, buffer.size), stream=other)
                other.sync()
                wrong += not (view[: buffer.size] == value).all()
                buffer.close(other)
            else:
                buffer.close(stream)
    for buffer, stream, _ in live:
        buffer.close(stream)
    return wrong


def host_part(host, size):
    """The first bytes of it."""
    from cuda.core import Buffer

    return Buffer.from_handle(int(host.handle), size, mr=None)


def claim(name, begin, *resources):
    """What these pools say is in use, against what is live."""
    mark.live(name, sum(resource.attributes.used_mem_current for resource in resources), begin)


def figures(name, resource, settled=True):
    """What the pool says of itself, where that does not depend on when it is asked."""
    attributes = resource.attributes
    if settled:
        say(name, "used", attributes.used_mem_current)
    say(name, "holds", attributes.reserved_mem_current >= attributes.used_mem_current, attributes.reserved_mem_high >= attributes.used_mem_high)
    say(name, "threshold", attributes.release_threshold, "reuse", attributes.reuse_follow_event_dependencies,
        attributes.reuse_allow_opportunistic, attributes.reuse_allow_internal_dependencies)


def child(resource, queue, back):
    """Another process: opens the pool, writes into the block that it is given."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    buffer = queue.get(timeout=50)
    buffer.fill(77, stream=stream)
    stream.sync()
    buffer.close()
    back.put("wrote")


def share(device, stream):
    """A pool that can be shared, and a process that writes into it."""
    context = multiprocessing.get_context("spawn")
    resource = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True))
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(resource, queue, back))
    process.start()
    buffer = resource.allocate(50000, stream=stream)
    buffer.fill(1, stream=stream)
    stream.sync()
    queue.put(buffer)
    say("share", back.get(timeout=50))
    process.join(50)
    host = LegacyPinnedMemoryResource().allocate(50000)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    say("share holds", bool((np.from_dlpack(host).view(np.uint8) == 77).all()), process.exitcode)
    buffer.close(stream)
    stream.sync()
    figures("share", resource)


def host_reaches(kind, options, stream):
    """Memory of a pool that the host reads as it is."""
    buffer = kind(options).allocate(100000, stream=stream)
    buffer.fill(3, stream=stream)
    stream.sync()
    assert (np.from_dlpack(buffer).view(np.uint8) == 3).all()
    buffer.close(stream)


def graphs(device, stream):
    """Captured: the memory is the graph's own."""
    out = device.memory_resource.allocate(8 * MIB, stream=stream)
    own = GraphMemoryResource(device)
    builder = device.create_graph_builder()
    builder.begin_building("relaxed")
    for i in range(8):
        inside = own.allocate(MIB, stream=builder)
        inside.fill(i + 1, stream=builder)
        part(out, i).copy_from(inside, stream=builder)
        inside.close(builder)
    attempt("graph: of a pool", lambda: device.memory_resource.allocate(100, stream=builder))
    graph = builder.end_building().complete()
    for _ in range(5):
        out.fill(0, stream=stream)
        graph.launch(stream)
        other = device.memory_resource.allocate(3 * MIB, stream=stream)
        other.close(stream)
    stream.sync()
    host = LegacyPinnedMemoryResource().allocate(8 * MIB)
    out.copy_to(host, stream=stream)
    stream.sync()
    say("graph holds", np.from_dlpack(host).view(np.uint8).reshape(8, MIB).max(axis=1).tolist())
    say("graph has", own.attributes.used_mem_current, own.attributes.reserved_mem_current > 0)
    own.trim()
    say("graph trimmed", own.attributes.reserved_mem_current)
    graph.close()
    out.close(stream)


def part(buffer, i):
    """A mebibyte of it."""
    from cuda.core import Buffer

    return Buffer.from_handle(int(buffer.handle) + i * MIB, MIB, mr=None)


def main():
    """Everything, on two devices."""
    device = Device(0)
    device.set_current()
    streams = [device.create_stream() for _ in range(4)] + [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM]
    begin = mark.here()
    say("own", walk(device.memory_resource, streams, 1, 600))
    synchronize()
    figures("own", device.memory_resource)
    claim("own", begin, device.memory_resource)
    made = DeviceMemoryResource(device)
    say("made", walk(made, streams, 2, 600))
    synchronize()
    figures("made", made)
    kept = made.allocate(25 * 512, stream=streams[0])
    figures("made, one", made)
    several = [made.allocate(512 * (n + 1), stream=streams[n % 4]) for n in range(100)]
    claim("made, many", begin, made)
    for n, buffer in enumerate(several):
        buffer.close(streams[n % 4])
    synchronize()
    claim("made, one", begin, made)
    say("made", kept.size, kept.is_device_accessible, kept.is_host_accessible, kept.device_id)
    limited = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=16 * MIB))
    first = limited.allocate(10 * MIB, stream=streams[1])
    claim("two pools", begin, made, limited)
    attempt("limited", lambda: limited.allocate(10 * MIB, stream=streams[1]))
    first.close(streams[1])
    again = limited.allocate(9 * MIB, stream=streams[1])
    again.close(streams[1])
    attempt("too much", lambda: made.allocate(1 << 46, stream=streams[1]))
    wrong = [None] * 4

    def work(i):
        Device(0).set_current()
        wrong[i] = walk(made, [streams[i], PER_THREAD_DEFAULT_STREAM], 10 + i, 250)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    synchronize()
    say("threads", wrong)
    figures("threads", made)
    claim("threads", begin, made)
    say("peers", sorted(made.peer_accessible_by))
    made.peer_accessible_by = [1]
    say("peers", sorted(made.peer_accessible_by))
    kept.fill(9, stream=streams[0])
    streams[0].sync()
    peer = Device(1)
    peer.set_current()
    stream = peer.create_stream()
    there = peer.memory_resource.allocate(kept.size, stream=stream)
    there.copy_from(kept, stream=stream)
    host = LegacyPinnedMemoryResource().allocate(kept.size)
    there.copy_to(host, stream=stream)
    stream.sync()
    say("peers hold", bool((np.from_dlpack(host).view(np.uint8) == 9).all()))
    there.close(stream)
    device.set_current()
    kept.close(streams[0])
    for name, kind, options in (("pinned", PinnedMemoryResource, PinnedMemoryResourceOptions()),
                                ("managed", ManagedMemoryResource, ManagedMemoryResourceOptions())):
        attempt(name, host_reaches, kind, options, streams[2])
    graphs(device, streams[3])
    share(device, streams[0])
    del made, limited, again, first
    gc.collect()
    synchronize()
    figures("end", device.memory_resource)
    claim("end", begin, device.memory_resource)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
