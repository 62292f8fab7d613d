"""memshim's start-up hook of Python, which `memshim run` puts first into PYTHONPATH, for the program and its children.

An interpreter that is not told otherwise (-S, -I, -E) imports this as `sitecustomize`. It leaves sys.path as it would have been, gives way to the
program's own sitecustomize, and waits for the import of a module that can say what its allocator gives: memshim_startup.py does the rest then.
Any version of Python may read this file. Nothing here may fail the program.
"""
import os
import sys


def leave_path():
    """This file's directory is nobody's but memshim's. Returns it."""
    directory = os.path.dirname(os.path.abspath(__file__))
    for entry in list(sys.path):
        if os.path.abspath(entry or ".") == directory:
            sys.path.remove(entry)
            sys.path_importer_cache.pop(entry, None)
    return directory


class Watch(object):
    """The finders behind it find a module as ever; once it is there, memshim_startup.py sees it."""

    names = {"cupy", "rmm"}
    directory = None

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.names:
            return None
        cls.names.discard(name)
        if not cls.names:
            sys.meta_path.remove(cls)
        for finder in sys.meta_path:
            find = None if finder is cls else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                cls.await_module(name, spec)
                return spec
        return None

    @classmethod
    def await_module(cls, name, spec):
        loader = spec.loader

        def exec_module(module):
            del loader.exec_module
            loader.exec_module(module)
            cls.begin(name, module)

        try:
            # As a frame of the import system it is no part of what a failing import prints.
            exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
            loader.exec_module = exec_module
        except Exception:  # a loader of another kind
            pass

    @classmethod
    def begin(cls, name, module):
        try:
            with open(os.path.join(cls.directory, "memshim_startup.py")) as file:
                code = compile(file.read(), file.name, "exec")
            names = {"__name__": "memshim_startup", "__file__": file.name}
            exec(code, names)
            names["begin_" + name](module)
        except Exception:  # then its memory is segments, as without this
            pass


Watch.directory = leave_path()
if sys.version_info >= (3, 8):
    sys.meta_path.insert(0, Watch)
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402,F401,W0611  the program's own, if it has one; else site.py hears that there is none
