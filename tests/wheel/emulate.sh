# emulate.sh - runs a command in a namespace in which the kernel gives programs of another machine to qemu; sourced. Needs root, a kernel
# from 6.7 on (binfmt_misc of each namespace of users) and qemu-user-static. Nothing outside is changed.
# shellcheck shell=sh

# What the kernel knows such a program by: the beginning of an ELF file of that machine.
emulated_magic() { # MACHINE
    case $1 in
    aarch64) printf '%s' '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' ;;
    x86_64) printf '%s' '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00' ;;
    esac
}

# emulated MACHINE COMMAND...: the command, in new namespaces of users, mounts and processes, in which all users are who they are outside.
emulated() {
    emulated_machine=$1
    shift
    emulated_gate=$(mktemp -d)
    mkfifo "$emulated_gate/go"
    emulated_rule=":qemu-$emulated_machine:M::$(emulated_magic "$emulated_machine"):\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$(command -v "qemu-$emulated_machine-static"):POCF"
    # The first shell waits until its users are known; what it starts then is root there.
    # shellcheck disable=SC2016
    unshare --user sh -c 'read -r _ <"$0"; exec "$@"' "$emulated_gate/go" unshare --mount --pid --fork --mount-proc sh -c '
        mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf "%s" "$0" >/proc/sys/fs/binfmt_misc/register && exec "$@"' \
        "$emulated_rule" "$@" &
    emulated_pid=$!
    until [ "$(readlink "/proc/$emulated_pid/ns/user")" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.05; done
    echo '0 0 65536' >"/proc/$emulated_pid/uid_map"
    echo '0 0 65536' >"/proc/$emulated_pid/gid_map"
    echo >"$emulated_gate/go"
    wait "$emulated_pid"
    emulated_status=$?
    rm -rf "$emulated_gate"
    return "$emulated_status"
}
