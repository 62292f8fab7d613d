#!/usr/bin/env bats
# What of a stack is shown: frames of interpreters, runtimes and frameworks are folded, --all-frames shows them, and a site is told
# by its first line of the program's own
load "$TEST_HELPERS/common.bash"
load helpers

# leaking REPORT FRAME...: train.json with one leak whose stack is these frames, innermost first: "MODULE FUNCTION" native (a
# module with a slash is a path, else it lies in /usr/lib; function - for none), "py FILE:LINE FUNCTION", "mark MARK [NAME]".
leaking() {
    python3 - "$data/train.json" "$@" <<'END'
import json, re, sys
report, out, frames = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3:]
report["modules"], report["frames"], report["stacks"], modules = [], [], [[0, -1]], {}
for text in reversed(frames):
    what, rest = (text.split(" ", 1) + [""])[:2]
    if what == "py":
        file, line, function = re.fullmatch(r"(.*):(\d+) (.*)", rest).groups()
        row = {"kind": "python", "code": 0, "offset": 2, "function": function, "file": file, "line": int(line)}
    elif what == "mark":
        mark, name = (rest.split(" ", 1) + [""])[:2]
        row = {"kind": "mark", "mark": mark, **({"name": name} if name else {})}
    else:
        path = what if "/" in what else "/usr/lib/" + what
        if path not in modules:
            modules[path] = len(modules)
            owner = "python" if "libpython" in path else "other"
            report["modules"].append({"id": modules[path], "path": path, "generation": 0, "owner": owner})
        row = {"kind": "native", "module": modules[path], "rel_pc": "0x10", **({"function": rest} if rest != "-" else {})}
    report["frames"].append(row)
    report["stacks"].append([len(report["stacks"]) - 1, len(report["frames"]) - 1])
report["sites"] = [dict(report["sites"][0], stack=len(report["stacks"]) - 1)]
report["leaks"] = [{"site": 0, "bytes": 2097152, "count": 1, "class": "at_exit", "first_ns": 1, "last_ns": 1}]
report["oom"], report["findings"] = [], []
json.dump(report, open(out, "w"))
END
}

packages=/venv/lib/python3.12/site-packages
torch=("$packages/torch/lib/libc10_cuda.so c10::cuda::CUDACachingAllocator::Native::uncached_allocate(unsigned long)"
    "$packages/torch/lib/libtorch_cpu.so at::detail::empty_generic(c10::ArrayRef<long>)"
    "$packages/torch/lib/libtorch_python.so torch::autograd::THPVariable_empty(_object*, _object*, _object*)")

# shown: the stack as leaks prints it, without its indent.
shown() {
    "$TEST_BIN" leaks "$@" | awk '
        /^[0-9].*, in / { own = $0; sub(/^.*, in /, "", own); sub(/ \(inferred\)$/, "", own) }
        /^    / { line[++count] = substr($0, 5); said = said || line[count] == own }
        END { if (own != "" && !said) print own; for (i = 1; i <= count; i++) print line[i] }'
}

@test "a merged stack is the lines of Python, a framework's frames one line, the interpreter's none" {
    leaking r.json "${torch[@]}" "libpython3.12.so cfunction_call" "libpython3.12.so _PyEval_EvalFrameDefault" "py $PWD/train.py:7 Net.hold" \
        "py $packages/torch/nn/modules/module.py:1750 Module._call_impl" "py $packages/torch/nn/modules/module.py:1740 Module._wrapped_call_impl" \
        "py $PWD/train.py:20 <module>" "libpython3.12.so PyEval_EvalCode" "libpython3.12.so Py_RunMain" "libc.so.6 __libc_start_main_impl" "python3.12 _start"
    shown r.json >told.txt
    printf '%s\n' '[3 frames of PyTorch, entered by torch::autograd::THPVariable_empty]' 'Net.hold (train.py:7)' '<module> (train.py:20)' | diff - told.txt
}

@test "PyTorch's own layers of Python are told by what the program called, and its wrappers not at all" {
    leaking r.json "${torch[@]}" "py $packages/torch/nn/modules/module.py:1098 Module.cuda.<locals>.<lambda>" "py $packages/torch/nn/modules/module.py:933 Module._apply" \
        "py $packages/torch/nn/modules/module.py:1098 Module.cuda" "py $PWD/train.py:7 main"
    shown r.json >told.txt
    printf '%s\n' '[6 frames of PyTorch, entered by Module.cuda]' 'main (train.py:7)' | diff - told.txt
    leaking r.json "${torch[@]}" "py $packages/torch/optim/adam.py:239 Adam.step" "py $packages/torch/optim/optimizer.py:79 _use_grad_for_differentiable.<locals>._use_grad" \
        "py $packages/torch/optim/optimizer.py:567 Optimizer.profile_hook_step.<locals>.wrapper" "py $PWD/train.py:7 main"
    shown r.json >told.txt
    printf '%s\n' '[3 frames of PyTorch, entered by torch::autograd::THPVariable_empty]' 'Adam.step (torch/optim/adam.py:239)' 'main (train.py:7)' | diff - told.txt
    leaking r.json "${torch[@]}" "py $packages/torch/nn/modules/module.py:1841 Module._call_impl.<locals>.inner" \
        "py $packages/torch/nn/modules/module.py:1740 Module._wrapped_call_impl" "py $PWD/train.py:7 main"
    [ "$(shown r.json | wc -l)" -eq 2 ]
}

@test "what a vendor's library asks for is told by the program's line that called it, and by the library" {
    leaking r.json "/opt/lib/libcublas.so.13 cublasCreate_v2" "/opt/lib/libcublas.so.13 cublasLtCreate" "${torch[@]}" "py $PWD/train.py:7 Net.forward"
    try leaks r.json
    [[ $out == *", by /opt/lib/libcublas.so.13, in Net.forward (train.py:7)"* ]]
    [ "$(shown r.json | head -n 1)" = "[2 frames of cuBLAS, entered by cublasLtCreate]" ]
}

@test "--all-frames shows every one, in each verb that prints stacks" {
    leaking r.json "${torch[@]}" "libpython3.12.so cfunction_call" "py $PWD/train.py:7 hold" "libpython3.12.so Py_RunMain" "libc.so.6 __libc_start_main_impl"
    [ "$(shown --all-frames r.json | wc -l)" -eq 7 ]
    shown --all-frames r.json | grep -q '^at::detail::empty_generic(c10::ArrayRef<long>)'
    shown --all-frames r.json | grep -q '^__libc_start_main_impl'
    for verb in summary leaks frag; do
        try "$verb" --all-frames r.json
        [ "$status" -eq 0 ]
    done
    try summary --all --all-frames r.json
    [[ $out == *"cfunction_call"* ]]
    try summary --all r.json
    [[ $out != *"cfunction_call"* ]]
}

@test "a site is told by its first line of the program's own" {
    leaking r.json "${torch[@]}" "py $packages/torch/functional.py:3 stack" "py /usr/lib/python3.12/asyncio/runners.py:9 run" "py $PWD/train.py:7 hold" "py $PWD/train.py:20 <module>"
    try leaks r.json
    [[ $out == *"2.0 MiB in 1 block, lost, cudaMalloc, device 0, by torch/lib/libc10_cuda.so, in hold (train.py:7)"* ]]
    try leaks --all-frames r.json
    [[ $out == *", by $packages/torch/lib/libc10_cuda.so, in hold (train.py:7)"* ]]
    try summary r.json
    [[ $out == *"  cudaMalloc by PyTorch, in hold (train.py:7)"* ]]
    try summary --all r.json
    [[ $out == *"of cudaMalloc, device 0, in hold (train.py:7)"* ]]
    for verb in leaks summary; do
        try "$verb" --json r.json
        python3 -c 'import json, sys
told = json.load(open(sys.argv[1]))
own = (told.get("leaks") or told["top_sites"])[0]["own"]
assert (own["function"], own["line"], own["kind"]) == ("hold", 7, "python"), own' out.txt
    done
    leaking r.json "${torch[@]}" "py $packages/torch/functional.py:3 stack"
    try leaks r.json
    [[ $out == *", in stack (torch/functional.py:3)"* ]]
    leaking r.json "libhelper.so helper" "$PWD/libmine.so grab" "$PWD/app main"
    try leaks r.json
    [[ $out == *", in grab (libmine.so+0x10)"* ]]
}

@test "bootstraps of Python, ctypes and runtimes are folded without a word" {
    leaking r.json "libcudart.so.12 -" "libffi.so.8 ffi_call" "/usr/lib/python3.12/lib-dynload/_ctypes.cpython-312.so -" "py $PWD/work.py:3 work" \
        "py /usr/lib/python3.12/threading.py:1010 Thread.run" "py /usr/lib/python3.12/threading.py:1073 Thread._bootstrap_inner" \
        "py /usr/lib/python3.12/threading.py:1030 Thread._bootstrap" "libpython3.12.so thread_run" "libc.so.6 start_thread"
    [ "$(shown r.json)" = "work (work.py:3)" ]
    try leaks r.json
    [ "$(grep -c 'work (work.py:3)' out.txt)" -eq 1 ]
    [[ $out != *", by "* ]]
    try findings r.json
    [[ $out != *"libffi"* ]]
    leaking r.json "libffi.so.8 ffi_call" "py $PWD/pack/mod.py:3 <module>" "py <frozen importlib._bootstrap>:488 _call_with_frames_removed" \
        "py <frozen runpy>:88 _run_code" "py <frozen runpy>:198 _run_module_as_main"
    [ "$(shown r.json)" = "<module> (pack/mod.py:3)" ]
}

@test "numba-cuda's and cuda-python's own layers are theirs" {
    leaking r.json "$packages/cuda/bindings/_driver.cpython-312.so -" "$packages/cuda/bindings/driver.cpython-312.so __pyx_f_alloc" "libpython3.12.so -" \
        "py $packages/numba_cuda/numba/cuda/cudadrv/driver.py:900 allocator" "py $packages/numba_cuda/numba/cuda/api.py:130 to_device" \
        "py $packages/numba_cuda/numba/cuda/cudadrv/devices.py:231 context.<locals>.wrapper" "py $PWD/job.py:5 upload"
    shown r.json >told.txt
    printf '%s\n' '[2 frames of cuda-python, entered by __pyx_f_alloc]' '[3 frames of numba-cuda, entered by to_device]' 'upload (job.py:5)' | diff - told.txt
}

@test "without frames of Python the interpreter's are one line, and a stack is never empty" {
    leaking r.json "${torch[@]}" "libpython3.12.so cfunction_call" "libpython3.12.so Py_RunMain"
    shown r.json >told.txt
    printf '%s\n' '[3 frames of PyTorch, entered by torch::autograd::THPVariable_empty]' \
        '[2 frames of the interpreter, entered by Py_RunMain]' | diff - told.txt
    leaking r.json "libcudart.so.12 cudaMallocHelper" "libcuda.so.1 -"
    [ "$(shown r.json | head -n 1)" = "cudaMallocHelper (libcudart.so.12+0x10)" ]
}

@test "marks stand where they belong, and an inferred line says that it is" {
    leaking r.json "${torch[@]}" "libstdc++.so.6 -" "libc.so.6 start_thread" "libc.so.6 __clone3" "mark thread pt_autograd_0" "mark inferred" "py $PWD/train.py:9 step"
    try leaks r.json
    [[ $out == *", in step (train.py:9) (inferred)"* ]]
    shown r.json | sed -n 2p | grep -q 'thread pt_autograd_0'
    shown r.json | sed -n 3p | grep -q 'latest'
    [ "$(shown r.json | sed -n 4p)" = "step (train.py:9)" ]
    leaking r.json "${torch[@]}" "libpython3.12.so -" "mark apart" "py $PWD/train.py:9 step"
    [ "$(shown r.json | wc -l)" -eq 3 ]
    try leaks r.json
    [[ $out == *", in step (train.py:9)"$'\n'* ]]
}

@test "C++ names are shown without template arguments, and odd ones whole" {
    check() {
        leaking r.json "$PWD/app $1"
        [ "$(shown r.json)" = "$2 (app+0x10)" ] || { shown r.json; false; }
    }
    check 'std_like<int, A<B> >::get<3>(C<D> const&) const' 'std_like::get(C const&) const'
    check 'ns::operator<< <int>(S<T>&)' 'ns::operator<< (S&)'
    check 'X<Y>::operator->() const' 'X::operator->() const'
    check 'f<(lambda(int)->bool)>(int)' 'f(int)'
    check 'A<B>::operator<=>(A<B>)' 'A::operator<=>(A)'
    check 'broken<(int' 'broken<(int'
    check 'broken>>more<' 'broken>>more<'
    check '<Vec<T> as Trait>::make' '<Vec<T> as Trait>::make'
    check 'my_operator<int>()' 'my_operator()'
}

@test "a run is entered by a name without its parameters, and odd ones whole" {
    check() {
        leaking r.json "$packages/torch/lib/libc10.so f" "$packages/torch/lib/libc10.so $1" "$PWD/app main"
        [ "$(shown r.json | head -n 1)" = "[2 frames of PyTorch, entered by $2]" ] || { shown r.json; false; }
    }
    check 'ns::call<int>(A<B> const&, void (*)(int)) const' 'ns::call'
    check 'X::operator()(int)' 'X::operator()'
    check '(anonymous namespace)::run(int)' '(anonymous namespace)::run'
    check 'f(int)::{lambda(int)#1}::operator()(int) const' 'f(int)::{lambda(int)#1}::operator()'
    check 'plain' 'plain'
    check 'void* ns::make<int>(A<B>&) [clone .cold]' 'ns::make'
    check 'std::vector<int, A<B> > const& X<Y>::all() const &' 'X::all'
    check 'decltype (({parm#1}.get)({parm#2})) ns::call<T>(T&)' 'ns::call'
    check 'X::operator bool() const' 'X::operator bool'
    check 'operator new(unsigned long)' 'operator new'
    check '<Vec<T> as Trait>::make' '<Vec<T> as Trait>::make'
    check '(odd)' '(odd)'
    check 'odd))' 'odd))'
}

@test "a rule is for the function itself, not for what it is given or made for" {
    leaking r.json "/opt/app make" "/opt/app std::pair<int, A> std::make_pair<int, A>(int, A)" "/opt/app void mine::use<std::string>(rmm::mr::pool&)" "/opt/app main"
    shown r.json >told.txt
    printf '%s\n' 'make (app+0x10)' 'void mine::use(rmm::mr::pool&) (app+0x10)' 'main (app+0x10)' | diff - told.txt
}

@test "reports that are damaged or hostile are answered" {
    leaking r.json "${torch[@]}" "py $PWD/train.py:9 step" "mark inferred"
    python3 - <<'END'
import copy, json
sound = json.load(open("r.json"))
changes = [lambda r: r["stacks"].__setitem__(1, [1, 0]), lambda r: r.update(frames=[None, 3, [], "x"]), lambda r: r.update(modules=None),
           lambda r: r.update(frames=[{"kind": 7, "function": 3, "file": [], "line": "x", "mark": 5}] * 5),
           lambda r: r.update(frames=[{"kind": "python", "function": "\x1b[31m<" * 5000, "file": "\n\x1b" * 3000}] * 5),
           lambda r: r.update(frames=[{"kind": "native", "function": "a<" * 40000}] * 5), lambda r: r.update(frames=[{"kind": "native", "function": "operator"}] * 5),
           lambda r: r.update(frames=[{"kind": "native", "function": ">" * 40000}] * 5), lambda r: r.update(frames=[{"kind": "mark", "mark": "\x1b"}] * 5)]
for number, change in enumerate(changes):
    report = copy.deepcopy(sound)
    change(report)
    json.dump(report, open("bad%d.json" % number, "w"))
END
    for bad in bad*.json; do
        for verb in leaks summary; do
            try "$verb" "$bad"
            [ "$status" -eq 0 ]
            absent grep -q $'\e' out.txt
        done
    done
}
