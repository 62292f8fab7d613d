#!/usr/bin/env bats
# memshim doctor
load "$TEST_HELPERS/common.bash"
load helpers

@test "without a program it speaks of the machine" {
    try doctor
    [ "$status" -eq 0 ]
    [[ $out == *"library      $(readlink -f "$TEST_LIB")"* ]]
    try doctor --json
    python3 -c 'import json, sys; m = json.load(open(sys.argv[1]))["machine"]; assert m["library"] and m["lookup_hooks"] in (True, False)' out.txt
}

@test "a program that is not there is an error" {
    try doctor -- ./missing
    refused 2 "./missing"
}

@test "it speaks of every vendor's libraries" {
    mkdir vendors
    for name in libamdhip64.so.6 libascendcl.so libnccl.so.2; do ln -s "$TEST_SIM/$name" vendors/; done
    LD_LIBRARY_PATH=vendors "$TEST_BIN" doctor >out.txt
    grep -Eq "^  hip +vendors/libamdhip64.so.6$" out.txt
    grep -Eq "^  acl +vendors/libascendcl.so$" out.txt
    grep -Eq "^  nccl +vendors/libnccl.so.2$" out.txt
    [ -e /dev/kfd ] || grep -q "/dev/kfd is not here" out.txt
    ! grep -q "nor another vendor's" out.txt
    LD_LIBRARY_PATH=vendors "$TEST_BIN" doctor --json >out.json
    python3 -c 'import json, sys; m = json.load(open(sys.argv[1]))["machine"]
assert {row["api"] for row in m["libraries"]} == {"hip", "acl", "nccl"}, m' out.json
}

# holders NVML...: what the doctor says of a device whose processes the management library tells so.
holders() {
    mkdir -p nvml
    ln -sf "$top_builddir/tests/cli/fake_nvml.so" nvml/libnvidia-ml.so.1
    FAKE_NVML="$*" LD_LIBRARY_PATH=nvml "$TEST_BIN" doctor >out.txt
}

@test "memory of a device that no living process of the user has is told, with who has it" {
    holders ""
    grep -q "^  memory       79.51 GiB free of 80.00 GiB on device 0, Card$" out.txt
    ! grep -q " by " out.txt
    mkfifo in
    python3 -c 'import subprocess, sys, time
child = subprocess.Popen(["true"])
while open(f"/proc/{child.pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
    time.sleep(0.01)
print(child.pid, flush=True)
sys.stdin.read()' <in >zombie &
    waits=$!
    exec 8>in
    until [ -s zombie ]; do sleep 0.1; done
    FAKE_NVML_LOST=300 holders "$$:2048 $(cat zombie):1024 g4194305:512 0:256"
    exec 8>&-
    wait "$waits"
    cat out.txt
    grep -q "^               1.00 GiB by process $(cat zombie), a zombie of $(id -un)'s: " out.txt
    grep -q "^               512.0 MiB by process 4194305, which is not here: " out.txt
    grep -q "^               256.0 MiB by process 0, which is not here: " out.txt
    grep -q "^               300.0 MiB by no process that the driver names: " out.txt
    ! grep -q "process $$," out.txt
    [ "$(grep -c " by " out.txt)" -eq 4 ]
    FAKE_NVML_LOST=300 holders "$$:- 4194305:-"
    grep -q "^               some memory by process 4194305, which" out.txt
    ! grep -q "by no process" out.txt
}

@test "memory of a device that other users have is told by user" {
    [ "$(id -u)" -eq 0 ] || skip "only root has processes of two users"
    holder=$(setpriv --reuid 65534 --clear-groups sh -c 'sleep 60 >/dev/null 2>&1 & echo $!')
    other=$(setpriv --reuid 65534 --clear-groups sh -c 'sleep 60 >/dev/null 2>&1 & echo $!')
    holders "$$:64 $holder:1024 $other:512"
    kill "$holder" "$other"
    cat out.txt
    grep -q "^               1.50 GiB by user nobody, 2 processes$" out.txt
    [ "$(grep -c " by " out.txt)" -eq 1 ]
}

@test "a static program, one for another machine, and a set-user-ID one are named as out of reach" {
    echo 'int main(void) { return 0; }' >main.c
    if ${TEST_CC:-cc} -static -o static main.c 2>/dev/null; then
        try doctor --static-only -- ./static
        [ "$status" -eq 1 ]
        [[ $out == *"./static is statically linked"* ]]
    fi
    ${TEST_CC:-cc} -o plain main.c
    python3 - <<'END'
data = bytearray(open("plain", "rb").read())
data[18:20] = (62 if data[18] != 62 else 183).to_bytes(2, "little")
open("foreign", "wb").write(data)
END
    chmod +x foreign
    try doctor --static-only -- ./foreign
    [ "$status" -eq 1 ]
    [[ $out == *"./foreign is for "*"cannot be loaded into it"* ]]
    [ "$(id -u)" -eq 0 ] || return 0
    cp plain setuid
    chown nobody setuid
    chmod 4755 setuid
    try doctor --static-only -- ./setuid
    [ "$status" -eq 1 ]
    [[ $out == *"set-user-ID"* ]]
}

@test "a script is looked through to the program that runs it" {
    printf '#!/usr/bin/env sh\necho hello\n' >script
    chmod +x script
    try doctor --static-only -- ./script
    [ "$status" -eq 0 ]
    [[ $out == *"run by       $(command -v sh)"* ]]
    printf '#!/no/such/shell\n' >script
    try doctor --static-only -- ./script
    [ "$status" -eq 1 ]
    [[ $out == *"/no/such/shell"* ]]
}

@test "libraries are found as the loader finds them: RPATH, RUNPATH, LD_LIBRARY_PATH, and what is missing" {
    mkdir one two
    for directory in one two; do
        echo 'int cudaMalloc(void **p, unsigned long n) { return p && n; }' >runtime.c
        ${TEST_CC:-cc} -shared -fPIC -Wl,-soname,libcudart.so.13 -o "$directory/libcudart.so.13" runtime.c
    done
    echo 'int cudaMalloc(void **, unsigned long); int main(void) { return cudaMalloc(0, 0); }' >main.c
    link() { ${TEST_CC:-cc} -o app main.c one/libcudart.so.13 "$@"; }
    where() { python3 -c 'import json; print([o["path"] for o in json.load(open("out.txt"))["program"]["objects"] if o["name"] == "libcudart.so.13"][0])'; }
    link -Wl,--disable-new-dtags,-rpath,"\$ORIGIN/one"
    LD_LIBRARY_PATH=$PWD/two try doctor --static-only --json -- ./app
    [ "$(readlink -f "$(where)")" = "$PWD/one/libcudart.so.13" ]
    link -Wl,--enable-new-dtags,-rpath,"\$ORIGIN/one"
    LD_LIBRARY_PATH=$PWD/two try doctor --static-only --json -- ./app
    [ "$(where)" = "$PWD/two/libcudart.so.13" ]
    try doctor --static-only --json -- ./app
    [ "$(readlink -f "$(where)")" = "$PWD/one/libcudart.so.13" ]
    rm one/libcudart.so.13
    if ! ldconfig -p 2>/dev/null | grep -q 'libcudart.so.13'; then
        try doctor --static-only --json -- ./app
        [ "$(where)" = None ]
    fi
}

@test "the loader's own answer is the same" {
    need ldd
    try doctor --static-only --json -- "$(command -v python3)"
    [ "$status" -eq 0 ]
    echo 'int main(void) { return 0; }' >main.c
    ${TEST_CC:-cc} -o app main.c -Wl,--no-as-needed -lm -lz 2>/dev/null || ${TEST_CC:-cc} -o app main.c -Wl,--no-as-needed -lm
    ldd app | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort >loader.txt
    [ -s loader.txt ]
    # The doctor lists only objects that concern a GPU; "not found" is listed always, so nothing may be missing here.
    try doctor --static-only --json -- ./app
    python3 -c 'import json; assert not [o for o in json.load(open("out.txt"))["program"]["objects"] if not o["path"]]'
}

@test "a copy of the runtime inside a program is found, stripped or not, and is an obstacle on the simulator" {
    [ -n "$TEST_CUDA_HOME" ] || skip "there is no CUDA toolkit"
    PATH=$PATH:$TEST_CUDA_HOME/bin need nvcc
    printf '#include <cuda_runtime.h>\nint main() { void *p; return cudaMalloc(&p, 1); }\n' >app.cu
    PATH=$PATH:$TEST_CUDA_HOME/bin nvcc -o app app.cu
    cp app stripped
    strip stripped
    for program in ./app ./stripped; do
        try doctor --static-only -- "$program"
        [ "$status" -eq 0 ]
        [[ $out == *"a copy of the CUDA runtime inside"* ]]
        try doctor --static-only --sim -- "$program"
        [ "$status" -eq 1 ]
        [[ $out == *"cannot run on the simulated one"* ]]
    done
    PATH=$PATH:$TEST_CUDA_HOME/bin nvcc -cudart shared -o app app.cu
    try doctor --static-only -- ./app
    [[ $out != *"inside"* ]]
    [[ $out == *"calls the CUDA runtime"* ]]
}

@test "a copy of the simulated runtime inside a program is no obstacle there" {
    try doctor --static-only --sim -- "$top_builddir/tests/sim/static_13"
    [[ $out == *"a copy of the CUDA runtime inside"* ]]
    [[ $out != *"cannot run on the simulated one"* ]]
}

@test "the run itself: the program's output goes to standard error, its status is shown, nothing is left behind" {
    need_plain sh
    TMPDIR=$PWD try doctor --json -- sh -c 'echo from the program; exit 3'
    [ "$status" -eq 0 ]
    grep -q 'from the program' err.txt
    python3 -c 'import json; r = json.load(open("out.txt")); assert r["run"]["status"] == 3 and r["run"]["reports"] == 0'
    [ -z "$(ls -d memshim-doctor.* 2>/dev/null)" ]
}

@test "a damaged file is no reason to fail" {
    echo 'int main(void) { return 0; }' >main.c
    ${TEST_CC:-cc} -o plain main.c
    python3 - "$TEST_BIN" <<'END'
import os, random, subprocess, sys
random.seed(7)
whole = open("plain", "rb").read()
for number in range(150):
    data = bytearray(whole)
    if number % 3 == 0:
        data = data[:random.randrange(len(data))]
    for _ in range(random.choice((1, 8, 64))):
        if data:
            data[random.randrange(min(len(data), 16384))] = random.randrange(256)
    open("hurt", "wb").write(data)
    os.chmod("hurt", 0o755)
    done = subprocess.run([sys.argv[1], "doctor", "--static-only", "--json", "--", "./hurt"], capture_output=True, timeout=20)
    assert done.returncode in (0, 1), (number, done)
END
}
