#!/usr/bin/env python3
"""Findings of tensors, in reports that are made here: each fault is found once, with its line, at each number of findings.def and not below it; and
nothing is found where programs do what they should. torch_faults.py of tests/clients has the same faults in PyTorch itself."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402

MIB, SECOND = 1 << 20, 10 ** 9
TORCH = "/usr/lib/python3/dist-packages/torch/"
CALL = ("Module._call_impl", TORCH + "nn/modules/module.py", 1790)
RELU = ("relu", TORCH + "nn/functional.py", 1500)
ENGINE = ("torch::autograd::Engine::execute(...)", None, 0)
STEP = ("Adam._init_group", TORCH + "optim/adam.py", 179)


def own(function, line):
    """A line of the program's."""
    return function, "/home/user/train.py", line


class Report:
    """A report of one device whose tensors are added place by place."""

    def __init__(self):
        self.stacks, self.frames, self.sites, self.segments = [[-1, -1]], [], [], []
        self.pinned, self.peak, self.held_peak, self.ooms = [], None, None, []

    def stack(self, frames):
        node = 0
        for function, file, line in reversed(frames):
            self.frames.append({"kind": "python", "function": function, "file": file, "line": line} if file else {"kind": "native", "function": function, "module": 0, "rel_pc": "0x10"})
            self.stacks.append([node, len(self.frames) - 1])
            node = len(self.stacks) - 1
        return node

    def site(self, frames, count, bytes_each, most=None, at_peak=0, first=1, last=10, live=0, held=(), kind="inner"):
        """`most` of its `count` tensors at once, at_peak of them at the peak; times in seconds."""
        most = count if most is None else most
        into = self.sites if kind == "inner" else self.pinned
        into.append({"id": len(into), "hash": "%016x" % len(into), "stack": self.stack(frames), "device": 0 if kind == "inner" else -1, "api": "PyTorch" if kind == "inner" else "cudaHostAlloc",
                     "kind": kind, "total_bytes": count * bytes_each, "total_count": count, "live_bytes": live * bytes_each, "live_count": live, "freed_count": count - live,
                     "at_peak_bytes": at_peak * bytes_each, "max_bytes": most * bytes_each, "first_ns": first * SECOND, "last_ns": last * SECOND, "lifetime_ns_sum": 1, "rounding_bytes": 0,
                     "requested_bytes": count * bytes_each, "size_hist": {str(bytes_each): count}, **({"held": [list(row) for row in held]} if held else {})})
        return self

    def work(self, last=10):
        """What comes and goes with each step."""
        return self.site([RELU, own("step", 5), own("main", 90)], 1000, 4096, most=2, first=1, last=last)

    def segment(self, whole, pieces):
        """Pieces (bytes, site) of a segment, and what is free behind them."""
        blocks, at = [], 0
        for size, site in pieces:
            blocks.append({"offset": at, "bytes": size, "requested": size, "state": "live", "site": site})
            at += size
        self.segments.append({"device": 0, "address": "0x7f0000000000", "bytes": whole, "tier": "framework", "backing": "vendor", "space": "address",
                              "blocks": [*blocks, {"offset": at, "bytes": whole - at, "requested": 0, "state": "free"}]})
        return self

    def ran_out(self):
        self.ooms.append({"t_ns": 5 * SECOND, "device": 0, "api": "PyTorch", "layer": "tensors", "kind": "inner", "requested": MIB, "live": MIB, "stack": self.stack([RELU, own("main", 90)]),
                          "cause": "capacity", "sites": [], "top_sites": []})
        return self

    def found(self):
        """[(rule, bytes, what is said)] of the report."""
        peak = self.peak or sum(site["at_peak_bytes"] for site in self.sites)
        live = sum(site["live_bytes"] for site in self.sites)
        device = {"index": 0, "api": "cuda", "name": "Simulated", "total_bytes": 8 << 30, "granularity_bytes": 2 * MIB, "live_bytes": live, "live_count": 1, "peak_live_bytes": peak, "peak_ns": 1,
                  "held_bytes": live, "peak_held_bytes": self.held_peak or peak, "cached_bytes": 0, "allocated_bytes": 1, "allocated_count": 1}
        report = {"schema_version": "1.0", "tool": {"name": "memshim", "version": "0", "commit": "0"},
                  "run": {"argv": ["train.py"], "exe": "/usr/bin/python3", "cwd": "/home/user", "host": "h", "pid": 1, "ppid": 0, "start_unix_ns": 1, "end_unix_ns": 11 * SECOND,
                          "end_reason": "exit", "complete": True, "symbolized": True},
                  "config": [], "devices": [dict(device)], "pools": [], "apis": [], "modules": [{"id": 0, "path": TORCH + "lib/libtorch_cpu.so", "generation": 0}], "frames": self.frames, "codes": [],
                  "stacks": self.stacks, "sites": self.pinned, "leaks": [], "segments": [], "oom": [], "inner_oom": self.ooms, "findings": [], "phases": [],
                  "heaps": [{"name": "PyTorch", "api": "PyTorch", "device": 0, "live_bytes": 0, "live_count": 0}], "inner_devices": [device], "inner_sites": self.sites, "inner_leaks": [],
                  "inner_segments": self.segments, "inner_timeline": {"bucket_ns": 1, "t": [], "devices": [], "moments": [n * SECOND for n in range(11)]}}
        path = os.path.join(TMP, "made.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file)
        done = subprocess.run([MEMSHIM, "findings", "--json", path], capture_output=True, text=True, check=False)
        return [(row["rule"], row["bytes"], row["message"] + "; " + row["advice"]) for row in json.loads(done.stdout)["findings"]] if done.returncode == 0 else done.stderr


def once(name, report, rule, size, *words):
    found = report.found()
    fact(len(found) == 1 and found[0][:2] == (rule, size) and all(word in found[0][2] for word in words), name, [found])


def never(name, report, rule=""):
    """Nothing, or nothing of one rule where another speaks."""
    found = report.found()
    fact(isinstance(found, list) and not any(rule in row[0] for row in found), name, [found])


def kept(lines=3, count=100, size=MIB, last=10, most=None):
    """The graph of each step that `train` computes is kept, on so many lines."""
    report = Report().work()
    for line in range(lines):
        report.site([RELU, own("Net.forward", 10 + line), CALL, own("train", 40)], count, size, most=most, at_peak=count if most is None else most, last=last)
    return report


def check_graphs():
    once("graphs that are kept are one finding, by the line that called the model", kept(), "growth", 300 * MIB, "on 3 lines", "train (/home/user/train.py:40)", "loss.item()")
    once("with a backward pass that was begun there it is one that keeps them", kept().site([ENGINE, own("train", 41)], 100, 512, most=1), "growth", 300 * MIB, "retain_graph=True",
         "train (/home/user/train.py:40)")
    deep = Report().work().site([RELU, own("Net.forward", 10), CALL, own("train", 40)], 400, MIB, at_peak=400).site([own("train", 39)], 50, 512, most=1)
    once("one line is enough where all layers' are kept", deep, "growth", 400 * MIB, "on 1 line, ", "train (/home/user/train.py:40)", "loss.item()")
    def most_layers(calls=100, there=400):
        """A model of six layers, all on one line, which a function calls; each has a workspace, and an optimizer's tensors, for a moment."""
        moments = Report().work().site([("at::cuda::getNewWorkspace()", None, 0), RELU, CALL, own("train", 40)], 6 * calls, 512, most=1)
        return moments.site([STEP, own("train", 42)], 6 * calls, 512, most=1).site([RELU, own("Net.forward", 10), CALL, own("train", 40)], 6 * calls, MIB, most=there, at_peak=there).site([own("train", 39)], calls, 512, most=1)
    once("so is one of which the last layers' goes, where the model was called a hundred times", most_layers(), "growth", 400 * MIB, "on 1 line, ", "train (/home/user/train.py:40)", "loss.item()")
    never("less than two thirds are none", most_layers(there=396), "growth")
    never("of 99 calls all must be there", most_layers(calls=99), "growth")
    never("99 of a line are none", kept(count=99), "growth")
    once("two lines are two places, not a graph", Report().work().site([RELU, own("Net.forward", 10), CALL, own("train", 40)], 100, MIB), "growth", 100 * MIB, "Net.forward (/home/user/train.py:10)",
         "for train (/home/user/train.py:40)")
    never("what stopped while work went on is none: a model that was loaded", kept(last=7), "growth")
    once("up to a quarter of its time before the end it is", kept(last=9), "growth", 300 * MIB, "train (/home/user/train.py:40)")
    never("what goes with each step is none", kept(most=3))
    never("without work there are no steps", Report().site([own("load", 3)], 200, MIB))


def cache(held, most=50, last=10, size=MIB):
    """A place of which little stays with each step: what it held at moments."""
    return Report().work().site([own("answer", 20), own("serve", 30)], 1000, size, most=most, last=last, held=[(moment, blocks * size) for moment, blocks in enumerate(held, 2)])


def check_caches():
    once("a cache without a bound", cache((10, 20, 30, 48)), "growth", 50 * MIB, "answer (/home/user/train.py:20)")
    once("also where it was emptied in the end", cache((10, 20, 30, 48, 0)), "growth", 50 * MIB, "answer (/home/user/train.py:20)")
    never("three moments are too few", cache((10, 20, 48)))
    never("one that is full goes up and down", cache((48, 40, 49, 41, 50)))
    never("one that shrank is none", cache((10, 20, 30, 24)))
    never("one that filled early is none", cache((10, 20, 30, 48), last=6))
    never("less than 1 MiB is none", cache((10, 20, 30, 48), size=20000))


def validation(tensors=20, lines=4, size=8 * MIB, others=0, backward=(own("train", 50),), main="main", caller="validate"):
    """A validation in grad mode beside a training loop whose backward passes are begun there."""
    report = Report().work()
    for line in range(lines):
        report.site([RELU, own("Net.forward", 10 + line), CALL, own(caller, 60), own(main, 90)], 100 * tensors // lines, size, most=tensors // lines, at_peak=tensors // lines)
    report.site([RELU, own("Net.forward", 10), CALL, own("train", 49), own("main", 88)], 1000, 512, most=1)
    for frame in backward:
        report.site([ENGINE, frame, own("main", 88)], 1000, 512, most=1)
    return report.site([own("main", 2)], 1, others, at_peak=1) if others else report


def check_validations():
    once("activations held for a backward pass that never comes", validation(), "graph_without_backward", 160 * MIB, "20 tensors", "validate (/home/user/train.py:60)", "torch.no_grad()")
    once("also in a program that has none at all", validation(backward=()), "graph_without_backward", 160 * MIB, "validate (/home/user/train.py:60)")
    never("where who calls it begins backward passes it may be one of these, also where that one calls a model itself", validation(backward=(own("train", 50),), main="train"))
    never("nor where a helper of who calls it begins them", validation(backward=(own("descend", 70),)))
    once("a helper that calls a model itself begins that one's", validation(backward=(own("train", 50),)).site([ENGINE, own("descend", 70), own("train", 50), own("main", 88)], 10, 512, most=1),
         "graph_without_backward", 160 * MIB, "validate (/home/user/train.py:60)")
    never("nor where one who begins them calls the same function, though nothing of that is there at the peak",
          validation().site([RELU, own("Net.forward", 10), CALL, own("validate", 60), own("train", 49), own("main", 88)], 1000, 512, most=1))
    never("nor where memory ran out: the backward pass could not come", validation(backward=()).ran_out(), "graph_without_backward")
    never("where who calls it begins backward passes it may be one of these", validation(backward=(own("main", 91),)))
    never("where it begins them itself it is one", validation(backward=(own("validate", 61),)))
    never("where it is not known who began them nothing is said", validation().site([ENGINE], 10, 512, most=1))
    never("15 tensors are too few", validation(tensors=15, lines=3))
    never("two lines are a cache of keys and values", validation(lines=2))
    never("less than 64 MiB is none", validation(size=3 * MIB))
    never("less than a quarter of the peak is none", validation(others=500 * MIB))


def check_optimizers():
    def adam(state, others):
        return Report().work().site([own("load", 3)], 1, others, at_peak=1, last=2, live=1).site([STEP, own("train", 51)], 1, state, at_peak=1, first=2, last=3, live=1)
    once("an optimizer's state", adam(128 * MIB, 128 * MIB), "optimizer_state", 128 * MIB, "128.0 MiB of the 256.0 MiB", "train (/home/user/train.py:51)")
    never("up to a third of the peak it is none", adam(100 * MIB, 200 * MIB))
    never("less than 64 MiB is none", adam(63 * MIB, 10 * MIB))


def check_categories():
    """What is made below an optimizer's step, or by who shares its folder, and is no optimizer's."""
    wrapper, sgd, closure = ("Optimizer.profile_hook_step.<locals>.wrapper", TORCH + "optim/optimizer.py", 567), ("SGD.step", TORCH + "optim/sgd.py", 117), own("closure", 50)
    average = ("AveragedModel.forward", TORCH + "optim/swa_utils.py", 250)
    lightning = ("Strategy.optimizer_step", "/usr/lib/python3/dist-packages/lightning/strategy.py", 9)

    def of(*frames):
        return Report().work().site([*frames, own("train", 51)], 1, 128 * MIB, at_peak=1)
    for name, *frames in (("the activations of a closure", RELU, CALL, closure, sgd, wrapper), ("the gradients of a closure", ENGINE, closure, sgd, wrapper),
                          ("what a closure makes itself", RELU, closure, sgd, wrapper), ("what a package's closure makes", RELU, lightning, sgd, wrapper),
                          ("what an averaged model's layers make", RELU, CALL, average), ("an average", average)):
        never(name + " is not the optimizer's", of(*frames))
    once("the step of an optimizer of the program's own is one", of(own("Mine.step", 30), wrapper), "optimizer_state", 128 * MIB, "Mine.step (/home/user/train.py:30)")
    once("a tensor's own function below it as well", of(("Tensor.__rsub__", TORCH + "_tensor.py", 40), STEP), "optimizer_state", 128 * MIB, "train (/home/user/train.py:51)")


def check_segments():
    def pinned(whole=1024 * MIB, live=4 * MIB, idle=1024 * MIB):
        report = Report().work().site([own("pin", 33)], 1, live, at_peak=1, live=1)
        report.peak, report.held_peak = 2048 * MIB, 2048 * MIB + idle
        return report.segment(whole, [(live, 1)])
    once("a tensor in a segment that is free but for it", pinned(), "pinned_segment", 1020 * MIB, "4.0 MiB, made by pin (/home/user/train.py:33)", "expandable_segments:True")
    never("where tensors needed all at some time it does no harm", pinned(idle=1019 * MIB))
    never("more than an eighth in use is none", pinned(live=129 * MIB))
    never("less than 64 MiB free is none", pinned(whole=67 * MIB))


def check_host():
    def batches(count, size, most=None, last=10):
        return Report().work().site([own("loop", 70)], count, size, most=most, last=last, kind="pinned")
    once("batches in pinned memory that are kept", batches(100, MIB), "growth", 100 * MIB, "loop (/home/user/train.py:70)", "pin_memory=True")
    never("blocks that are used again are none", batches(100, MIB, most=4))
    never("99 blocks are none", batches(99, MIB))
    never("less than 64 MiB is none", batches(100, MIB // 2))
    never("what was pinned before the work is none", batches(100, MIB, last=2))


plan(53)
check_graphs()
check_caches()
check_validations()
check_optimizers()
check_categories()
check_segments()
check_host()
