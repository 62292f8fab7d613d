"""Hooks, of one thread each."""
import threading

thread_local = threading.local()


def get_memory_hooks():
    if not hasattr(thread_local, "hooks"):
        thread_local.hooks = {}
    return thread_local.hooks


class MemoryHook:
    name = "MemoryHook"

    def __enter__(self):
        if self.name in get_memory_hooks():
            raise KeyError("memory hook %s already exists" % self.name)
        get_memory_hooks()[self.name] = self
        return self

    def __exit__(self, *_):
        del get_memory_hooks()[self.name]

    def malloc_postprocess(self, **kwargs):
        pass

    def free_preprocess(self, **kwargs):
        pass

    def free_postprocess(self, **kwargs):
        pass
