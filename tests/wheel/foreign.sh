# foreign.sh - trees of another machine's Debian 12, made without running anything of theirs; sourced. Needs root and debootstrap.
# shellcheck shell=sh

# foreign_tree TREE MACHINE PACKAGES MIRROR: what debootstrap fetches is unpacked and not configured. What packages' scripts would do and
# programs need after all: names of users, the links of alternatives, and a folder for /proc, where debootstrap leaves a link to itself.
foreign_tree() {
    foreign=$1
    debootstrap --foreign --arch="$2" --variant=minbase --include="$3" bookworm "$foreign" "$4" || return 1
    # debootstrap has unpacked what is required alone.
    for package in "$foreign"/var/cache/apt/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -C "$foreign" -k --keep-directory-symlink -xf - 2>/dev/null
    done
    rm -f "$foreign"/var/cache/apt/archives/*.deb
    [ ! -L "$foreign/proc" ] || rm "$foreign/proc"
    mkdir -p "$foreign/proc" "$foreign/sys"
    cp "$foreign/usr/share/base-passwd/passwd.master" "$foreign/etc/passwd"
    cp "$foreign/usr/share/base-passwd/group.master" "$foreign/etc/group"
    ln -sf mawk "$foreign/usr/bin/awk"
    ln -sf which.debianutils "$foreign/usr/bin/which"
}
