"""nccl4py, which opens NCCL, on two devices in one process: memory of NCCL's, registered, reduced, gathered, sent. What comes back is computed; what is live is what the buffers say
of their sizes."""

import gc

import mark
import nccl.core as nccl
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LegacyPinnedMemoryResource

MIB = 1 << 20


def host(size, value=0):
    """Host memory, and what numpy sees of it."""
    buffer = LegacyPinnedMemoryResource().allocate(size)
    view = np.from_dlpack(buffer).view(np.uint8)
    view[:] = value
    return buffer, view


class Rank:
    """A device with its communicator and its memory."""

    def __init__(self, communicator, size):
        self.communicator = communicator
        self.device = Device(communicator.rank)
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.send, self.receive = nccl.mem_alloc(size), nccl.mem_alloc(size)
        self.handles = [communicator.register_buffer(buffer) for buffer in (self.send, self.receive)]

    def fill(self, value):
        """What is to be sent."""
        self.device.set_current()
        self.send.fill(value, stream=self.stream)
        self.receive.fill(0, stream=self.stream)

    def received(self):
        """The smallest and the largest byte that came."""
        self.device.set_current()
        buffer, view = host(self.receive.size)
        self.receive.copy_to(buffer, stream=self.stream)
        self.stream.sync()
        return int(view.min()), int(view.max())

    def close(self):
        """Gives everything back."""
        self.device.set_current()
        self.stream.sync()
        for handle in self.handles:
            handle.close()
        for buffer in (self.send, self.receive):
            nccl.mem_free(buffer)


def together(ranks, function):
    """A call of every rank, in one group."""
    with nccl.group():
        for rank in ranks:
            rank.device.set_current()
            function(rank)


def main():
    """Everything."""
    for number in (1, 0):
        Device(number).set_current()
    communicators = nccl.Communicator.init_all([0, 1])
    begin = mark.here()
    ranks = [Rank(communicator, 8 * MIB) for communicator in communicators]
    Device(0).set_current()
    mark.live("buffers of all ranks", sum(rank.send.size + rank.receive.size for rank in ranks), begin)
    for rank in ranks:
        rank.fill(10 + rank.communicator.rank)
    together(ranks, lambda rank: rank.communicator.allreduce(rank.send, rank.receive, nccl.SUM, stream=rank.stream))
    print("reduced", [rank.received() for rank in ranks])
    together(ranks, lambda rank: rank.communicator.broadcast(rank.send, rank.receive, 1, stream=rank.stream))
    print("broadcast", [rank.received() for rank in ranks])
    with nccl.group():
        ranks[0].communicator.send(ranks[0].send, 1, stream=ranks[0].stream)
        ranks[1].communicator.recv(ranks[1].receive, 0, stream=ranks[1].stream)
    print("sent", ranks[1].received())
    for rank in ranks:
        rank.close()
        rank.communicator.destroy()
    del ranks, communicators
    gc.collect()
    Device(0).set_current()
    assert driver.cuCtxSynchronize()[0] == 0
    print(nccl.get_version().libnccl.version)


main()
