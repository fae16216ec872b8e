#!/bin/bash
# Starts what it is given, by default a server. Where the data folder is empty it makes a cluster first, as the variables say
# that the official image of PostgreSQL has: POSTGRES_PASSWORD, POSTGRES_USER, POSTGRES_DB, each also as …_FILE,
# POSTGRES_INITDB_ARGS, POSTGRES_INITDB_WALDIR, POSTGRES_HOST_AUTH_METHOD, PGDATA; then it runs what is in
# /docker-entrypoint-initdb.d.
set -euo pipefail

fail() { echo "entrypoint: $*" >&2; exit 1; }

# from_file NAME DEFAULT: sets NAME to what the file NAME_FILE has, if that is given.
from_file() {
    local name=$1 file=$1_FILE
    if [ -n "${!file:-}" ]; then
        [ -z "${!name:-}" ] || fail "$name and $file are both set"
        export "$name=$(<"${!file}")"
        unset "$file"
    elif [ -z "${!name:-}" ]; then
        export "$name=$2"
    fi
}

# As root, before everything else: the folders may be mounted ones.
become_postgres() {
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    install -d -o postgres -g postgres -m 775 /var/run/postgresql
    find "$PGDATA" \! -user postgres -exec chown postgres '{}' +
    if [ -n "${POSTGRES_INITDB_WALDIR:-}" ]; then
        install -d -o postgres -g postgres -m 700 "$POSTGRES_INITDB_WALDIR"
    fi
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- \
        env HOME=/var/lib/postgresql "$0" "$@"
}

make_cluster() {
    local method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256} options=()
    if [ -z "$POSTGRES_PASSWORD" ] && [ "$method" != trust ]; then
        fail "POSTGRES_PASSWORD is not set. With POSTGRES_HOST_AUTH_METHOD=trust everybody who" \
            "reaches the server is its superuser, without a password."
    fi
    [ -z "${POSTGRES_INITDB_WALDIR:-}" ] || options+=("--waldir=$POSTGRES_INITDB_WALDIR")
    options+=("--pgdata=$PGDATA" "--username=$POSTGRES_USER" --auth-local=trust "--auth-host=$method")
    # The arguments are words as a shell reads them.
    eval "options+=(${POSTGRES_INITDB_ARGS:-})"
    if [ -n "$POSTGRES_PASSWORD" ]; then
        initdb "${options[@]}" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
    else
        initdb "${options[@]}"
    fi
    printf '\n# Of POSTGRES_HOST_AUTH_METHOD.\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"
}

run_sql() {
    PGHOST='' PGHOSTADDR='' psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --no-password \
        --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" "$@"
}

run_scripts() {
    local file
    for file in /docker-entrypoint-initdb.d/*; do
        case $file in
            *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
            *.sql) run_sql --file="$file" ;;
            *.sql.gz) gunzip --stdout "$file" | run_sql ;;
            *.sql.xz) xz --decompress --stdout "$file" | run_sql ;;
            *.sql.zst) zstd --decompress --stdout "$file" | run_sql ;;
            *) [ ! -e "$file" ] || echo "entrypoint: $file is left alone" ;;
        esac
    done
}

# With a server that nobody reaches from outside, and that scripts find where psql looks.
fill_cluster() {
    pg_ctl --pgdata="$PGDATA" --wait \
        --options="$(quoted "${@:2}") -c listen_addresses='' -c port=${PGPORT:-5432}" start
    if [ "$POSTGRES_DB" != postgres ]; then
        POSTGRES_DB=postgres run_sql --set=name="$POSTGRES_DB" <<<'CREATE DATABASE :"name";'
    fi
    run_scripts
    pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop
}

quoted() { [ $# -eq 0 ] || printf '%q ' "$@"; }

# Whether an argument asks for something else than a server.
asks_for_help() {
    local argument
    for argument in "$@"; do
        case $argument in -'?' | --help | --describe-config | -V | --version | -C) return 0 ;; esac
    done
    return 1
}

main() {
    # Options alone are the server's.
    if [ $# -eq 0 ] || [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi
    if [ "$1" = postgres ] && ! asks_for_help "$@"; then
        if [ "$(id -u)" = 0 ]; then become_postgres "$@"; fi
        if [ ! -s "$PGDATA/PG_VERSION" ]; then
            from_file POSTGRES_PASSWORD ''
            from_file POSTGRES_USER postgres
            from_file POSTGRES_DB "$POSTGRES_USER"
            make_cluster
            fill_cluster "$@"
            unset POSTGRES_PASSWORD
        fi
    fi
    exec "$@"
}

main "$@"
