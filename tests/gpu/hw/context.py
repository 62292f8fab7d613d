"""What a stage of scripts/hardware works with: programs of the pack, their environment, a limit of time, a folder for output."""

import importlib.util
import json
import os
import signal
import subprocess
import tempfile
import time


class Skip(Exception):
    """The stage cannot be run here; the text says what is missing."""


class Failed(Exception):
    """The stage was run and went wrong."""


CUDA_PLACES = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")


class Context:
    """One stage's. `seconds` is for the whole stage, however many programs it runs."""

    def __init__(self, pack, output, dry_run, seconds):
        self.pack, self.output, self.dry_run = pack, output, dry_run
        self.until = time.monotonic() + seconds
        self.seconds = seconds
        self.verdict, self.notes = "", []  # what makes the stage a failed one although it has rows
        self.scratch = tempfile.TemporaryDirectory(prefix="memshim-hardware.")  # pylint: disable=consider-using-with

    def spent(self):
        """Seconds since the stage began."""
        return self.seconds - (self.until - time.monotonic())

    def program(self, name):
        """The path of a program of the pack."""
        return os.path.join(self.pack, "bin", name)

    def script(self, name):
        """The path of a Python program of the pack."""
        return os.path.join(self.pack, "hw", name)

    def read(self, name):
        """A text of the pack."""
        with open(os.path.join(self.pack, name), encoding="utf-8") as file:
            return file.read()

    def note(self, text):
        """A sentence for the stage's page."""
        self.notes.append(text)

    def find_library(self, name):
        """Where a library of the vendor's lies: the pip packages of this Python, the toolkit; None if nowhere."""
        places = list(CUDA_PLACES)
        nvidia = importlib.util.find_spec("nvidia")
        for root in (nvidia.submodule_search_locations or []) if nvidia else []:
            places[:0] = [os.path.join(root, sub, "lib") for sub in sorted(os.listdir(root))]
        for place in [*os.environ.get("LD_LIBRARY_PATH", "").split(":"), *places]:
            if place and os.path.exists(os.path.join(place, name)):
                return os.path.join(place, name)
        return None

    def environment(self, more=None, own=True):
        """Nothing of memshim's or the simulator's but what is asked for, and the libraries of this kind of run. Programs that are
        not of the pack bring their own libraries: the toolkit's would come before them."""
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("MEMSHIM_", "MEMSIM_")) and k not in ("LD_PRELOAD", "PYTORCH_CUDA_ALLOC_CONF",
                                                                          "PYTORCH_NO_CUDA_MEMORY_CACHING")}
        path = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
        if self.dry_run:
            path = [os.path.join(self.pack, "sim")]
        elif own:
            runtime = self.find_library("libcudart.so.13")
            if runtime and os.path.dirname(runtime) not in path:
                path.append(os.path.dirname(runtime))
        env["LD_LIBRARY_PATH"] = ":".join(path)
        env["MEMSHIM_DIR"] = self.scratch.name
        return {**env, **(more or {})}

    def preload(self, variables, report=None):
        """What the environment needs for memshim with these variables."""
        return {"LD_PRELOAD": os.path.join(self.pack, "lib", "libmemshim.so"), **variables,
                "MEMSHIM_REPORT": os.path.join(self.scratch.name, report) if report else "none"}

    def report_figures(self, name):
        """Peak live bytes of device 0, the number of calls, and validity of a report; nothing if there is none."""
        try:
            with open(os.path.join(self.scratch.name, name), encoding="utf-8") as file:
                report = json.load(file)
        except (OSError, ValueError):
            return {}
        device = (report.get("devices") or [{}])[0]
        return {"peak_live_bytes": device.get("peak_live_bytes"), "calls": report.get("overhead", {}).get("calls"),
                "valid": self.is_valid(name)}

    def is_valid(self, name):
        """What `memshim validate` says of a report; None if the command cannot run here."""
        environment = self.environment({"LD_LIBRARY_PATH": os.path.join(self.pack, "deps")})
        done = subprocess.run([self.program("memshim"), "validate", os.path.join(self.scratch.name, name)], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return {0: True, 1: False}.get(done.returncode)

    def need_module(self, name):
        """A Python package, or the stage is skipped."""
        if importlib.util.find_spec(name) is None:
            raise Skip(f"the Python package {name} is not installed")

    def run(self, command, env=None, keep=None, fails_ok=False):
        """The output of a program. Its process group is ended when the stage's time is over."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise Failed(f"the stage took more than {self.seconds} seconds")
        with subprocess.Popen(command, env=self.environment(env, command[0].startswith(self.pack)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True) as child:
            try:
                out, complaint = child.communicate(timeout=left)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                out, complaint = child.communicate()
                raise Failed(f"{os.path.basename(command[0])} was ended after {self.seconds} seconds") from None
            finally:
                if keep:
                    self.keep(keep, out, complaint)
        if child.returncode != 0 and fails_ok and out:
            self.verdict = f"{os.path.basename(command[0])} ended with {child.returncode}"
        elif child.returncode != 0:
            raise Failed(f"{' '.join(os.path.basename(c) for c in command)} ended with {child.returncode}: "
                         f"{(complaint.strip().splitlines() or ['no word'])[-1]}")
        return out

    def keep(self, name, out, complaint):
        """Puts a program's output beside the stage's results."""
        with open(os.path.join(self.output, name), "w", encoding="utf-8") as file:
            file.write(out or "")
            for line in (complaint or "").splitlines():
                file.write(f"# stderr: {line}\n")
