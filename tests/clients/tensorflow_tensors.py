"""TensorFlow: tensors to the device and back. On its BFC allocator the pool that the program lets it have is what is live; on the driver's pool (TF_GPU_ALLOCATOR=cuda_malloc_async)
it is the bytes that TensorFlow says are in use.

Its wheel finds each of NVIDIA's wheels by itself but cuSOLVER's, without which it registers no device: that one is opened here first. Nothing is computed.
"""
import ctypes
import gc
import os
import sysconfig

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
PACKAGES = sysconfig.get_paths()["platlib"]
for name in ("nvjitlink/lib/libnvJitLink.so.12", "cusparse/lib/libcusparse.so.12", "cusolver/lib/libcusolver.so.11"):
    ctypes.CDLL(os.path.join(PACKAGES, "nvidia", name))

import mark  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

POOL_MIB = 1024
ASYNC = os.environ.get("TF_GPU_ALLOCATOR") == "cuda_malloc_async"


def held():
    """Bytes that TensorFlow says are in use."""
    return tf.config.experimental.get_memory_info("GPU:0")["current"]


def tell(name, begin):
    """What there is; its claim, where nothing is cached."""
    print(name, held())
    mark.live(name, held() if ASYNC else POOL_MIB << 20, begin)


def main():
    """Everything."""
    devices = tf.config.list_physical_devices("GPU")
    print([device.name for device in devices])
    if not ASYNC:
        tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration(memory_limit=POOL_MIB)])
    begin = mark.here()
    with tf.device("/GPU:0"):
        tensors = [tf.identity(tf.constant(np.arange(1000 * (number + 1), dtype=np.float32))) for number in range(40)]
        tell("tensors", begin)
        print(tensors[7].device, tensors[7].shape, tensors[7].dtype.name)
        assert (tensors[7].numpy() == np.arange(8000)).all(), "the copy differs"
        del tensors[::2]
        gc.collect()
        tell("half of them", begin)
        del tensors
        gc.collect()
        tell("none", begin)
        mark.leaks("what TensorFlow keeps", held() if ASYNC else POOL_MIB << 20)


main()
