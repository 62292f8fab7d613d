#!/bin/sh
# A container made of namespaces alone: a root of its own with this machine's programs in it, no network tools, no image. What is under
# /opt, /app and elsewhere comes by --volume, as in Docker's or Podman's run and in a Kubernetes pod.
#
# Usage: room.sh [--shm SIZE] [--read-only] [--user UID [--group GID]] [--no-proc] [--file OUTSIDE:INSIDE]... [--volume OUTSIDE:INSIDE[:ro]]...
#                [--directory DIRECTORY] [--check] -- COMMAND...
#
# --shm      how large /dev/shm is (64m, as Docker has it)
# --read-only the root cannot be written to, /tmp is part of it
# --group    a group that the user is in, beside one of its own
# --file     a file that is copied into the root (/etc/ld.so.preload, say)
# --check    only says by its status whether such a room can be made here; what is missing is on standard error
#
# The environment is what it was. It needs root, or a kernel that lets users have namespaces (then --user cannot be had).
set -eu

if [ "${ROOM_STAGE-}" != inside ]; then
    ROOM_STAGE=inside
    ROOM=$(mktemp -d "${TEST_TMP:-${TMPDIR:-/tmp}}/room.XXXXXX")
    export ROOM_STAGE ROOM
    trap 'rmdir "$ROOM" 2>/dev/null' EXIT
    if [ "$(id -u)" -eq 0 ]; then map=; else map=--map-root-user; fi
    status=0
    # shellcheck disable=SC2086
    unshare $map --mount --pid --fork --kill-child sh "$0" "$@" || status=$?
    exit "$status"
fi

shm=64m user='' group='' read_only='' proc=yes directory=/ volumes='' files='' check=''
while [ "$1" != -- ]; do
    case $1 in
    --shm) shm=$2 && shift ;;
    --user) user=$2 && shift ;;
    --group) group=$2 && shift ;;
    --directory) directory=$2 && shift ;;
    --volume) volumes="$volumes $2" && shift ;;
    --file) files="$files $2" && shift ;;
    --read-only) read_only=yes ;;
    --no-proc) proc= ;;
    --check) check=yes ;;
    *)
        echo "room.sh: $1 is not known" >&2
        exit 2
        ;;
    esac
    shift
done
shift

mount --make-rprivate /
mount -t tmpfs -o mode=755 room "$ROOM"
cd "$ROOM"
mkdir -p dev/shm proc etc opt app var run home tmp
chmod 1777 tmp
for place in usr bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$place" ]; then
        ln -s "$(readlink "/$place")" "$place"
    elif [ -d "/$place" ]; then
        mkdir "$place"
        mount --rbind "/$place" "$place"
    fi
done
for file in passwd group nsswitch.conf ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime hostname; do
    [ ! -e "/etc/$file" ] || cp -a "/etc/$file" etc/
done
for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mount -t tmpfs -o "size=$shm,mode=1777" shm dev/shm
# Where a sandbox has covered parts of /proc the kernel makes no new one, and its own has to do.
[ -z "$proc" ] || mount -t proc proc proc 2>/dev/null || mount --rbind /proc proc
for pair in $files; do
    mkdir -p ".$(dirname "${pair#*:}")"
    cp "${pair%%:*}" ".${pair#*:}"
done
for triple in $volumes; do
    inside=${triple#*:}
    mkdir -p ".${inside%:ro}"
    mount --bind "${triple%%:*}" ".${inside%:ro}"
    [ "$inside" = "${inside%:ro}" ] || mount -o remount,bind,ro ".${inside%:ro}"
done
[ -z "$read_only" ] || mount -o remount,ro "$ROOM"
[ -z "$check" ] || set -- true
unset ROOM_STAGE
# shellcheck disable=SC2086
exec chroot ${user:+--userspec=$user:$user --groups=$user${group:+,$group}} "$ROOM" /bin/sh -c 'unset ROOM; cd "$0" && exec "$@"' "$directory" "$@"
