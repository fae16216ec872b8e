#!/usr/bin/env bash
# root.sh MAJOR: prints the folder of a fresh root of the Debian that has PostgreSQL MAJOR, with it in it. Made once, as root, and
# kept under /var/cache/pg_eddy (or EDDY_ROOTS); nobody runs anything in it but in copies.
set -euo pipefail
. "$(dirname "$0")/../debian.sh"

major=$1
release=$(release_with "$major")
root=${EDDY_ROOTS:-/var/cache/pg_eddy/fresh}/$major
if [ ! -d "$root" ]; then
    new=$root.new.$$
    trap 'rm -rf "$new"' EXIT
    mkdir -p "$new"
    make_root "$release" "$new"
    # Installing a server starts none.
    printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
    chmod 755 "$new/usr/sbin/policy-rc.d"
    # In a namespace of its own: nothing that is mounted for it is there afterwards.
    unshare --mount --pid --fork --kill-child --mount-proc="$new/proc" chroot "$new" \
        env --unset=TMPDIR DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
        apt-get install -qy --no-install-recommends "postgresql-$major" </dev/null >&2
    rm -f "$new"/var/cache/apt/archives/*.deb "$new"/var/cache/apt/*.bin
    mv -T "$new" "$root"
fi
echo "$root"
