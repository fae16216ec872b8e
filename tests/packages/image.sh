#!/usr/bin/env bash
# image.sh CLONE MAJOR SHARED: imports a fresh Debian as the base of the image of docker/, builds the image with the package in target/deb, and has
# the scripts beside this one run in containers of it: what the entry point knows (inside_image.sh), and the life of a data folder
# (inside_volume.sh), which finds README's session in the folder SHARED and leaves there what psql printed. Nothing is pulled from a
# registry, and what is built is gone afterwards.
#
# Needs root. The container has no namespaces but one of mounts (chroot isolation): its network and its processes are the machine's, so
# it is run in a namespace of processes that ends with it.
set -euo pipefail

clone=$1 major=$2 shared=$3
scripts=$clone/tests/packages
if [ "$$" != 1 ]; then
    exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

# In memory, 2 GB of it at most times, and in this namespace of mounts: it is gone with it.
store=$(mktemp -d)
trap 'rmdir "$store"' EXIT
mount -t tmpfs -o size=8g pg_eddy-images "$store"
trap 'cd / && umount --recursive --lazy "$store" && rmdir "$store"' EXIT
mkdir "$store/tmp"
export BUILDAH_ISOLATION=chroot TMPDIR=$store/tmp
# No other driver works in every file system, and in containers.
b() { buildah --storage-driver vfs --root "$store/root" --runroot "$store/run" "$@"; }
step() { echo "== $* (after $SECONDS s)"; }

step import
root=$("$scripts/root.sh" "$major")
base=$(b from --quiet scratch)
cp -a --reflink=auto "$root/." "$(b mount "$base")"
b umount "$base" >/dev/null
b commit --quiet --rm "$base" "debian-with-postgresql:$major" >/dev/null

step build
data=/var/lib/postgresql/data
[ "$major" -lt 18 ] || data=/var/lib/postgresql/$major/docker
b build --quiet --format docker --pull-never --build-arg "BASE=localhost/debian-with-postgresql:$major" \
    --build-arg "PG_MAJOR=$major" --build-arg "PGDATA=$data" --file "$clone/docker/Containerfile" \
    --tag "pg_eddy:$major" "$clone" >/dev/null
b inspect --type image "pg_eddy:$major" >"$store/image.json"
grep -q pg_isready "$store/image.json" || { echo "the image has no health check" >&2; exit 1; }

step run
container=$(b from --quiet --pull-never "pg_eddy:$major")
b run --volume "$scripts:/tests:ro" "$container" -- /tests/inside_image.sh "$major"

step "the servers of the compose file"
container=$(b from --quiet --pull-never "pg_eddy:$major")
b run --volume "$scripts:/tests:ro" --volume "$shared:/packages:ro" \
    --volume "$clone/docker/compose/primary.sh:/docker-entrypoint-initdb.d/primary.sh:ro" "$container" -- \
    /tests/inside_compose.sh "$major"

# life IMAGE STEP...: each in a container of its own, with the same data folder.
life() {
    local image=$1 container
    for step in "${@:2}"; do
        container=$(b from --quiet --pull-never "$image")
        # Not where the image declares a volume: in this isolation that one would lie above.
        b run --volume "$scripts:/tests:ro" --volume "$shared:/packages" --volume "$store/volume:/volume" \
            --env PGDATA=/volume/data "$container" -- /tests/inside_volume.sh "$major" "$step"
        b rm "$container" >/dev/null
    done
}
step "the life of a data folder"
mkdir "$store/volume"
life "pg_eddy:$major" session restart upgrade
life "debian-with-postgresql:$major" without_library
life "pg_eddy:$major" found_again removal
life "debian-with-postgresql:$major" plain

step "the extension alone"
b build --quiet --pull-never --build-arg "BASE=localhost/debian-with-postgresql:$major" \
    --build-arg "PG_MAJOR=$major" --file "$clone/docker/Containerfile.extension" \
    --tag "pg_eddy-extension:$major" "$clone" >/dev/null
extension=$(b mount "$(b from --quiet --pull-never "pg_eddy-extension:$major")")
found=$(cd "$extension" && find lib share -type f | sort)
expected=$( (cd "$clone/sql" && ls pg_eddy.control pg_eddy--*.sql | sed 's|^|share/extension/|'; printf 'lib/%s\n' pg_eddy.so pg_eddy_engine) | sort)
[ "$found" = "$expected" ] || { echo "the image has $found" >&2; exit 1; }
[ -f "$extension/licenses/pg_eddy/copyright" ]
# PostgreSQL looks for extensions elsewhere from 18 on.
if [ "$major" -ge 18 ]; then
    container=$(b from --quiet --pull-never "debian-with-postgresql:$major")
    b run --volume "$scripts:/tests:ro" --volume "$extension:/extensions/pg_eddy:ro" "$container" -- \
        /tests/inside_extension.sh "$major"
fi
step done
