"""Tests that pass, leak, and are too large, for tests/python/plugin.py: a name that begins with test_fails fails under memshim."""

import threading

import gpu
import pytest

MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def others():
    """What lives all the time, and is no test's; of what is kept some may be freed by one."""
    block = gpu.allocate(100 * MIB)
    gpu.kept.append(gpu.allocate(MIB))
    yield
    gpu.free(block)


@pytest.fixture
def model():
    """What a fixture allocates is the fixture's."""
    block = gpu.allocate(40 * MIB)
    yield block
    gpu.free(block)


@pytest.mark.limit_gpu_memory("24 MB")
def test_passes_small():
    gpu.free(gpu.allocate(24 * MIB))


@pytest.mark.limit_gpu_memory("24 MB")
def test_fails_large():
    small = gpu.allocate(5 * MIB)
    large = gpu.allocate(20 * MIB)
    gpu.free(small)
    gpu.free(large)


@pytest.mark.limit_gpu_memory("24 MB")
def test_passes_beside_a_fixture(model):
    gpu.free(gpu.allocate(20 * MIB))


@pytest.mark.limit_gpu_memory(size="24 MB")
@pytest.mark.limit_gpu_leaks
def test_fails_leaky():
    gpu.kept.append(gpu.allocate(3 * MIB))
    gpu.kept.append(gpu.allocate(2 * MIB))


@pytest.mark.limit_gpu_memory("24 MB")
@pytest.mark.limit_gpu_leaks
def test_passes_after_a_leak():
    blocks = [gpu.allocate(12 * MIB), gpu.allocate(12 * MIB)]
    for block in blocks:
        gpu.free(block)


@pytest.mark.limit_gpu_leaks("5 MiB")
def test_passes_small_leak():
    gpu.kept.append(gpu.allocate(5 * MIB))


@pytest.mark.limit_gpu_leaks
def test_passes_cycle():
    first, second = [gpu.Owned(MIB)], [gpu.Owned(MIB)]
    first.append(second)
    second.append(first)


@pytest.mark.limit_gpu_leaks
def test_passes_swap():
    gpu.free(gpu.kept.pop())


@pytest.mark.limit_gpu_memory("24 MB")
def test_fails_in_a_thread():
    def work():
        gpu.free(gpu.allocate(25 * MIB))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.limit_gpu_memory("none")
def test_passes_none():
    gpu.free(gpu.allocate(200 * MIB))


@pytest.mark.limit_gpu_memory("1%")
def test_fails_share():
    gpu.free(gpu.allocate(90 * MIB))


@pytest.mark.limit_gpu_memory("24 MB")
@pytest.mark.parametrize("size", [1, 30], ids=["passes", "x" * 300])
def test_sizes(size):
    gpu.free(gpu.allocate(size * MIB))


@pytest.mark.limit_gpu_memory("1K")
@pytest.mark.xfail(strict=True)
def test_passes_expected():
    gpu.free(gpu.allocate(MIB))


@pytest.mark.limit_gpu_memory("1K")
def test_fails_by_itself():
    gpu.free(gpu.allocate(MIB))
    raise AssertionError("its own reason")


def test_passes_without_a_mark():
    gpu.free(gpu.allocate(500 * MIB))
