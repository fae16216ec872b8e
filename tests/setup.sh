#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks (Debian and its descendants).
# Asks for nothing and changes nothing when all of it is there.
set -euo pipefail

pg_config=${PG_CONFIG:-pg_config}
packages=()

has_server_files() {
    local lib include
    lib=$("$pg_config" --pkglibdir 2>/dev/null) || return 1
    include=$("$pg_config" --includedir-server 2>/dev/null) || return 1
    [ -f "$include/postgres.h" ] && [ -x "$lib/pgxs/src/test/regress/pg_regress" ] &&
        [ -x "$("$pg_config" --bindir)/initdb" ]
}

has_libclang() {
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null || ldconfig -p | grep -q libclang ||
        [ -n "${LIBCLANG_PATH:-}" ]
}

has_server_files || packages+=(postgresql-15 postgresql-server-dev-15)
has_libclang || packages+=(libclang-dev)
command -v clang >/dev/null || packages+=(clang)
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v sqlsmith >/dev/null || packages+=(sqlsmith)
python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
command -v pkg-config >/dev/null || packages+=(pkg-config)

if [ "${#packages[@]}" -gt 0 ]; then
    if ! command -v apt-get >/dev/null; then
        echo "missing: ${packages[*]} (names of Debian packages); please install them" >&2
        exit 1
    fi
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -q </dev/null
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends "${packages[@]}" </dev/null
fi

if ! command -v "${CARGO:-cargo}" >/dev/null; then
    echo "cargo is missing: install Rust, for instance from https://rustup.rs" >&2
    exit 1
fi
