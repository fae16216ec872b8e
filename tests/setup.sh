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
# Neighbours: what the distribution has for this version of PostgreSQL, as far as it is installed from there.
has_neighbour() {
    case $1 in
    pgbouncer) command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] ;;
    *) [ -f "$("$pg_config" --sharedir)/extension/$1.control" ] ;;
    esac
}
major=$("$pg_config" --version 2>/dev/null | sed -E 's/^[^0-9]*([0-9]+).*/\1/') || major=15
neighbours=(pgaudit=postgresql-$major-pgaudit pgbouncer=pgbouncer pg_cron=postgresql-$major-cron
    pg_partman=postgresql-$major-partman pg_repack=postgresql-$major-repack
    postgis=postgresql-$major-postgis-3 vector=postgresql-$major-pgvector)
# Those that are missing and that the lists of packages have.
missing_neighbours() {
    local neighbour
    case $("$pg_config" --bindir 2>/dev/null) in
    '' | /usr/lib/postgresql/*) ;;
    *) return ;;
    esac
    for neighbour in "${neighbours[@]}"; do
        has_neighbour "${neighbour%%=*}" 2>/dev/null ||
            ! apt-cache show "${neighbour#*=}" >/dev/null 2>&1 || echo "${neighbour#*=}"
    done
}
command -v apt-cache >/dev/null && mapfile -t -O "${#packages[@]}" packages < <(missing_neighbours)
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
    # The lists may have been empty until now.
    mapfile -t -O "${#packages[@]}" packages < <(missing_neighbours)
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends "${packages[@]}" </dev/null
fi

if ! command -v "${CARGO:-cargo}" >/dev/null; then
    echo "cargo is missing: install Rust, for instance from https://rustup.rs" >&2
    exit 1
fi
