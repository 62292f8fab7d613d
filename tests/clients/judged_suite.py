"""Suites for judge_test.py, of the unittest kind: each but the first has one thing wrong, or not the same, under memshim. Needs no package."""
import ctypes
import os
import unittest

UNDER = "libmemshim.so" in os.environ.get("LD_PRELOAD", "")


class Sound(unittest.TestCase):
    """Passes, with one that fails everywhere, and one that passes under memshim alone."""

    @classmethod
    def setUpClass(cls):
        driver, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        driver.cuInit(0)
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        driver.cuCtxSetCurrent(context)
        driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4096))
        driver.cuMemFree_v2(pointer)

    def test_passes(self):
        self.assertTrue(True)

    def test_fails(self):
        self.fail("natively too")

    def test_here_alone(self):
        self.assertTrue(UNDER)


class Fails(Sound):
    """One fails."""

    def test_one(self):
        self.assertFalse(UNDER)


class Skips(Sound):
    """One is skipped."""

    def test_one(self):
        if UNDER:
            self.skipTest("under memshim")


class Ends(Sound):
    """One ends the process: it and what comes after it have no outcome."""

    def test_one(self):
        if UNDER:
            os._exit(0)


class Blind(unittest.TestCase):
    """None uses the device, so there is no report."""

    def test_one(self):
        self.assertTrue(True)


class Nothing(unittest.TestCase):
    """None passes natively."""

    def test_one(self):
        self.fail("natively too")
