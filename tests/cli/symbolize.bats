#!/usr/bin/env bats
# memshim symbolize
load "$TEST_HELPERS/common.bash"
load helpers

# frames FILE: "function line kind" of the stack of site 0, innermost first.
frames() {
    python3 - "$1" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
stack = report["sites"][0]["stack"]
while stack:
    parent, index = report["stacks"][stack]
    assert parent < stack
    frame = report["frames"][index]
    print(frame.get("function", "?"), frame.get("line", "?"), "inlined" if frame.get("inlined") else "plain")
    stack = parent
END
}

@test "functions, files and lines are written in, inlined functions as frames of their own" {
    "$top_builddir/tests/cli/self_report" >self.json 2>expected.txt
    try symbolize -o named.json self.json
    [ "$status" -eq 0 ]
    [[ $err == *"2 frames had no name; 2 have one now, 2 with file and line"* ]]
    frames named.json >found.txt
    diff expected.txt found.txt
    grep -q '"symbolized":true' named.json
    try leaks named.json
    [[ $out == *"self_report.c:"* ]]
}

@test "the lines are those that addr2line gives" {
    need addr2line
    "$top_builddir/tests/cli/self_report" >self.json 2>expected.txt
    "$TEST_BIN" symbolize -o named.json self.json
    pc=$(python3 -c 'import json; print(hex(int(json.load(open("self.json"))["frames"][0]["rel_pc"], 16) - 1))')
    addr2line -f -i -e "$top_builddir/tests/cli/self_report" "$pc" | sed 's/ (discriminator.*//' |
        awk 'NR % 2 { name = $0; next } { sub(/.*:/, ""); print name, $0 }' >oracle.txt
    frames named.json | sed 's/ [a-z]*$//' | head -n "$(wc -l <oracle.txt)" | diff oracle.txt -
    [ "$(wc -l <oracle.txt)" -eq 3 ]
}

@test "a report is replaced by itself only with -f, keeping its mode" {
    "$top_builddir/tests/cli/self_report" >self.json 2>/dev/null
    chmod 640 self.json
    try symbolize self.json
    refused 2 "self.json" "-f"
    try symbolize -f self.json
    [ "$status" -eq 0 ]
    [ "$(stat -c %a self.json)" = 640 ]
    frames self.json | grep -q main
    cp self.json once.json
    try symbolize -f self.json
    cmp self.json once.json
    try symbolize -o - self.json
    [ "$out" = "$(cat once.json)" ]
}

@test "another build of the module is not believed, and said" {
    "$top_builddir/tests/cli/self_report" >self.json 2>/dev/null
    sed -i 's/"build_id": "..../"build_id": "0000/' self.json
    try symbolize -o named.json self.json
    [ "$status" -eq 0 ]
    [[ $err == *"self_report: another build than the recorded one (build id 0000"* ]]
    frames named.json | grep -q '^? ?'
}

@test "a module that is gone is named once" {
    "$top_builddir/tests/cli/self_report" >self.json 2>/dev/null
    sed -i 's|"path": "[^"]*|"path": "/no/such/program|' self.json
    try symbolize -o named.json self.json
    [ "$status" -eq 0 ]
    [ "$(grep -c '/no/such/program: not found' err.txt)" -eq 1 ]
}

@test "--sysroot finds a module that was copied away" {
    mkdir -p root/opt
    cp "$top_builddir/tests/cli/self_report" root/opt/
    "$top_builddir/tests/cli/self_report" 2>expected.txt | sed 's|"path": "[^"]*|"path": "/opt/self_report|' >self.json
    try symbolize --sysroot root -o named.json self.json
    [ "$status" -eq 0 ]
    frames named.json | diff expected.txt -
    try symbolize --sysroot missing -o named.json self.json
    refused 2 "--sysroot" "missing"
}

@test "a stripped module: its symbols alone, then its separate debug file by --debug-path" {
    need objcopy
    id=$("$top_builddir/tests/cli/self_report" 2>/dev/null | sed -n 's/.*"build_id": "\([0-9a-f]*\)".*/\1/p')
    [ -n "$id" ]
    mkdir -p "debug/.build-id/${id:0:2}"
    objcopy --only-keep-debug "$top_builddir/tests/cli/self_report" "debug/.build-id/${id:0:2}/${id:2}.debug"
    objcopy --strip-debug "$top_builddir/tests/cli/self_report" nodebug
    objcopy --strip-all "$top_builddir/tests/cli/self_report" stripped
    ./nodebug >self.json 2>expected.txt
    try symbolize -o named.json self.json
    frames named.json >found.txt
    [ "$(cat found.txt)" = "$(printf 'outer ? plain\nmain ? plain')" ]
    ./stripped >self.json 2>/dev/null
    try symbolize -f -o named.json self.json
    frames named.json >found.txt
    [ "$(sort -u found.txt)" = "? ? plain" ]
    try symbolize --debug-path debug -f -o named.json self.json
    frames named.json | diff expected.txt -
}

@test "the names of C++ functions are made readable" {
    need c++
    grep -q MS_HAVE_DEMANGLE.1 "$top_builddir/config.h" || skip "no demangler in this build"
    cat >mangled.cc <<'END'
#include <cstdio>
namespace room { struct Chair { template <typename T> __attribute__((noinline)) static void *sit(T) { return __builtin_return_address(0); } };
__attribute__((noinline)) void *there(int x) { void *p = Chair::sit(x); asm volatile("" : "+r"(p)); return p; } }
extern "C" char __executable_start;
int main(int argc, char **) {
    std::printf("0x%lx\n", (unsigned long)((char *)room::there(argc) - &__executable_start));
}
END
    c++ -g -O1 -o mangled mangled.cc
    cat >self.json <<END
{"schema_version": "1.0", "run": {"symbolized": false}, "modules": [{"id": 0, "path": "$PWD/mangled"}],
 "frames": [{"kind": "native", "module": 0, "rel_pc": "$(./mangled)"}], "stacks": [[0, -1], [0, 0]],
 "sites": [{"id": 0, "stack": 1}]}
END
    try symbolize -o named.json self.json
    grep -q '"function":"room::there(int)"' named.json
}

@test "no file of a report makes it read a pipe, a directory or the network" {
    mkfifo pipe
    "$top_builddir/tests/cli/self_report" 2>/dev/null | sed "s|\"path\": \"[^\"]*|\"path\": \"$PWD/pipe|" >self.json
    DEBUGINFOD_URLS=http://127.0.0.1:9/ try symbolize -o named.json self.json
    [ "$status" -eq 0 ]
    [[ $err == *"pipe: cannot be read as an ELF file"* ]]
    sed -i "s|$PWD/pipe|$PWD|" self.json
    try symbolize -f -o named.json self.json
    [ "$status" -eq 0 ]
}

@test "debug information without an index of addresses, and of other compilers, tells the same" {
    source=$top_srcdir/tests/cli/self_report.c
    for compiler in gcc clang; do
        command -v "$compiler" >/dev/null || continue
        for flags in "-gdwarf-4" "-gdwarf-5" "-gdwarf-5 -fdebug-types-section" "-g -ffunction-sections" "-g -no-pie"; do
            # shellcheck disable=SC2086
            "$compiler" -D_GNU_SOURCE -O2 $flags -o program "$source" 2>/dev/null || continue
            objcopy --remove-section=.debug_aranges program 2>/dev/null || true
            ./program >self.json 2>expected.txt
            try symbolize -f -o named.json self.json
            frames named.json | diff expected.txt -
            echo "$compiler $flags" >>tried.txt
        done
    done
    [ "$(wc -l <tried.txt)" -ge 4 ]
}

@test "a source path is shown without detours where they lead nowhere else" {
    need gcc
    mkdir -p src real/build
    cp "$top_srcdir/tests/cli/self_report.c" src/
    ln -s real/build build
    mkdir build2
    (cd build2 && gcc -D_GNU_SOURCE -g -O1 -o ../straight ../src/./self_report.c)
    ./straight >self.json 2>/dev/null
    try symbolize -o named.json self.json
    grep -q "\"file\":\"$PWD/src/self_report.c\"" named.json
    mkdir real/src
    cp src/self_report.c real/src/
    (cd build && gcc -D_GNU_SOURCE -g -O1 -o "$TEST_TMP/linked" -fdebug-prefix-map="$TEST_TMP/real/build=$TEST_TMP/build" ../src/self_report.c)
    ./linked >self.json 2>/dev/null
    try symbolize -f -o named.json self.json
    grep -q "\"file\":\"$PWD/build/../src/self_report.c\"" named.json
}

# Writes a report of COUNT frames of a library that has symbols and no debug information, but for what FLAGs bring.
many_frames() { # COUNT FLAG...
    frames=$1
    shift
    need gcc objcopy
    python3 - "$frames" <<'PY' >many.c
import sys
for i in range(int(sys.argv[1])):
    print("int f%d(int x) { return x * %d + 1; }" % (i, i + 3))
PY
    gcc -O1 "$@" -shared -fPIC -Wl,--build-id -o libmany.so many.c
    python3 - "$frames" <<'PY' >many.json
import json, subprocess, sys
count = int(sys.argv[1])
places = {}
for line in subprocess.run(["nm", "-D", "libmany.so"], capture_output=True, text=True, check=True).stdout.splitlines():
    words = line.split()
    if len(words) == 3 and words[2].startswith("f") and words[2][1:].isdigit():
        places[int(words[2][1:])] = int(words[0], 16)
notes = subprocess.run(["readelf", "-n", "libmany.so"], capture_output=True, text=True, check=True).stdout
build_id = notes.split("Build ID:")[1].split()[0]
import os
print(json.dumps({"schema_version": "1.0", "run": {"symbolized": False},
    "modules": [{"id": 0, "path": os.path.abspath("libmany.so"), "build_id": build_id}],
    "frames": [{"kind": "native", "module": 0, "rel_pc": hex(places[i] + 2)} for i in range(count)],
    "stacks": [[0, -1]] + [[0, i] for i in range(count)],
    "sites": [{"id": i, "stack": i + 1} for i in range(count)]}))
PY
}

# Of one verb: the walks of symbol tables, the rows read in them, values of the report, walks of compilation units, entries of those, reads.
counted() { # ARGUMENTS...
    rm -f counts.txt
    LD_PRELOAD=$top_builddir/tests/cli/count_symbols.so COUNT_SYMBOLS=$PWD/counts.txt "$TEST_BIN" "$@" >/dev/null
    cat counts.txt
}

@test "the symbols of a module are walked once for all its frames, and not at all the next time" {
    need_plain memshim
    many_frames 400
    read -r walks rows _ <<<"$(counted summary many.json)"
    echo "first $walks walks, $rows rows"
    [ "$walks" -eq 1 ]
    [ "$rows" -ge 400 ]
    [ "$rows" -lt 1000 ]
    read -r walks rows _ _ _ reads <<<"$(counted leaks many.json)"
    echo "second $walks walks, $rows rows, $reads reads"
    [ "$walks" -eq 0 ]
    [ "$reads" -lt 200 ]
    try symbolize -o named.json many.json
    [[ $err == *"400 frames had no name; 400 have one now"* ]]
    grep -q '"function":"f399"' named.json
}

@test "debug information is gone through once for all frames of a compilation unit" {
    need_plain memshim
    for count in 400 800; do
        many_frames $count -g
        read -r _ _ _ units entries _ <<<"$(counted summary many.json)"
        echo "$count frames: $units units, $entries entries"
        [ "$units" -eq 0 ]
        [ "$entries" -ge "$count" ]
        [ "$entries" -le $((count * 5)) ]
        try symbolize -f -o named.json many.json
        [[ $err == *"$count frames had no name; $count have one now, $count with file and line"* ]]
    done
}

@test "what is inlined in a function of a namespace is told, whichever compiler it was" {
    cat >spaces.cc <<'EOF'
namespace outer {
volatile int seen;
__attribute__((always_inline)) inline void innermost(int n) { { int twice = n * 2; seen = twice; asm volatile("called_here:"); } }
struct kind { __attribute__((always_inline)) void middle(int n) { innermost(n + 1); } };
__attribute__((noinline, visibility("default"))) void outermost(int n) { kind k; if (n) k.middle(n); }
}
EOF
    for compiler in g++ clang++; do
        command -v "$compiler" >/dev/null || continue
        "$compiler" -O1 -g -shared -fPIC -o libspaces.so spaces.cc
        pc=$(nm libspaces.so | sed -n 's/^\([0-9a-f]*\) t called_here$/\1/p')
        echo '{"schema_version":"1.0","run":{"symbolized":false},"modules":[{"id":0,"path":"'"$PWD"'/libspaces.so"}],"frames":[{"kind":"native","module":0,"rel_pc":"0x'"$pc"'"}],"stacks":[[0,-1],[0,0]],"sites":[{"id":0,"stack":1}]}' >spaces.json
        try symbolize -f -o named.json spaces.json
        python3 -c "import json
report = json.load(open('named.json'))
for frame in report['frames']: print(frame['function'], frame['line'], frame.get('inlined', False))" >told.txt
        cat told.txt
        diff - told.txt <<'EOF'
outer::innermost(int) 3 True
outer::kind::middle(int) 4 True
outer::outermost(int) 5 False
EOF
    done
}

@test "names that were kept are not believed of a file that changed since" {
    need_plain memshim
    many_frames 20
    counted summary many.json
    sleep 0.01
    touch libmany.so
    read -r walks rows _ <<<"$(counted summary many.json)"
    [ "$walks" -eq 1 ]
    [ -n "$(ls "$XDG_CACHE_HOME/memshim/names")" ]
    for file in "$XDG_CACHE_HOME/memshim/names"/*; do
        echo "{}" >"$file"
    done
    try symbolize -o named.json many.json
    grep -q '"function":"f19"' named.json
    rm -rf "$XDG_CACHE_HOME"
    ln -s /nowhere "$XDG_CACHE_HOME"
    try symbolize -f -o named.json many.json
    [ "$status" -eq 0 ]
    grep -q '"function":"f19"' named.json
    rm "$XDG_CACHE_HOME"
}

@test "each frame of a report is looked at once, however many call sites have it" {
    need_plain memshim
    for count in 500 1000; do
        python3 - $count <<'PY' >sites.json
import json, sys
count = int(sys.argv[1])
frames = [{"kind": "native", "module": 0, "rel_pc": hex(16 * i), "function": "f%d" % i, "file": "/src/f.c", "line": i + 1} for i in range(4 * count)]
stacks = [[0, -1]] + [[0 if i % 4 == 0 else i, i] for i in range(4 * count)]
print(json.dumps({"schema_version": "1.0", "run": {"symbolized": True}, "modules": [{"id": 0, "path": "/bin/f"}], "frames": frames, "stacks": stacks,
                  "sites": [{"id": i, "stack": 4 * i + 4} for i in range(count)]}))
PY
        read -r _ _ gets _ <<<"$(counted summary sites.json)"
        echo "$count sites: $gets"
        [ -n "$less" ] && [ $(((gets - less) / 500)) -le 100 ] || [ $count -eq 500 ]
        less=$gets
    done
}
