#!/bin/bash
# inside_image.sh MAJOR: the image's entry point, as those use it who know the official image. Each server has a port that
# another argument gives it, for the network is the machine's.
set -euo pipefail

major=$1
port=$((20000 + $$ % 20000))
work=$(mktemp -d)
chmod 755 "$work"
initdb=/docker-entrypoint-initdb.d
server=0

step() { echo "-- $*"; }
fail() { echo "$*" >&2; exit 1; }

# start DATA [NAME=VALUE...] [ARGUMENT...]: starts a server of that data folder, and waits until it is healthy.
start() {
    local data=$1 variables=()
    shift
    while [[ ${1:-} == *=* && ${1:-} != -* ]]; do variables+=("$1"); shift; done
    env PGDATA="$data" "${variables[@]}" /usr/local/bin/entrypoint.sh "$@" -c port="$port" >"$work/log" 2>&1 &
    server=$!
    until pg_isready --quiet --host=127.0.0.1 --port="$port"; do
        kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; fail "the server ends"; }
        read -rt 0.1 <> <(:) || true
    done
}

# By the signal that the image names.
stop() {
    kill -INT "$server"
    wait "$server" || fail "the server ends with $?"
}

# over_tcp USER PASSWORD DATABASE SQL
over_tcp() {
    PGPASSWORD=$2 psql -XAtq --set=ON_ERROR_STOP=1 --no-password --host=127.0.0.1 --port="$port" \
        --username="$1" --dbname="$3" --command="$4"
}

expect() {
    local found
    found=$(over_tcp "$1" "$2" "$3" "$4")
    [ "$found" = "$5" ] || fail "$4 gives $found, not $5"
}

refuses() {
    local word=$1
    shift
    if env PGDATA="$work/refused" "$@" >"$work/log" 2>&1; then fail "$* succeeds"; fi
    grep -q -- "$word" "$work/log" || { cat "$work/log" >&2; fail "$* does not name $word"; }
}

step "a cluster needs a password"
refuses POSTGRES_PASSWORD /usr/local/bin/entrypoint.sh
refuses POSTGRES_PASSWORD_FILE POSTGRES_PASSWORD=a POSTGRES_PASSWORD_FILE=/dev/null /usr/local/bin/entrypoint.sh

step "another program is run as it is"
[ "$(/usr/local/bin/entrypoint.sh echo hello)" = hello ]
/usr/local/bin/entrypoint.sh --version | grep -q "PostgreSQL) $major"

step "variables, files, scripts and arguments"
echo 'secret word' >"$work/password"
echo 'CREATE EXTENSION pg_eddy' >$initdb/00-extension.sql
cat >$initdb/10-edges.sql <<'SQL'
CREATE TABLE edge (src int, dst int);
SQL
echo 'INSERT INTO edge VALUES (1, 2), (2, 3), (3, 1), (3, 4)' | gzip >$initdb/20-rows.sql.gz
cat >$initdb/30-view.sh <<'SH'
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
CREATE INCREMENTAL VIEW reach AS
    WITH RECURSIVE r(a, b) AS (
        SELECT src, dst FROM edge UNION SELECT r.a, e.dst FROM r JOIN edge e ON e.src = r.b)
    SELECT a, b FROM r;
SQL
SH
start "$work/data" POSTGRES_PASSWORD_FILE="$work/password" POSTGRES_USER=ada POSTGRES_DB=graphs \
    POSTGRES_INITDB_ARGS='--data-checksums --locale=C.UTF-8' -c work_mem=7MB
ada() { expect ada 'secret word' graphs "$@"; }
ada "SHOW work_mem" 7MB
ada "SHOW data_checksums" on
ada "SHOW wal_level" logical
ada "SHOW shared_preload_libraries" pg_eddy
ada "SELECT count(*) FROM reach" 12
ada "INSERT INTO edge VALUES (4, 1) RETURNING 1" 1
ada "SELECT count(*) FROM reach" 16
ada "SELECT state FROM eddy.views" live
if over_tcp ada wrong graphs 'SELECT 1' 2>/dev/null; then fail "any password does"; fi
[ "$(stat -c %U:%a "$work/data")" = postgres:700 ]
[ "$(ps -o user= -p "$server" 2>/dev/null || stat -c %U /proc/"$server")" = postgres ]

step "another start finds the cluster"
stop
start "$work/data"
ada "SELECT count(*) FROM reach" 16
ada "SELECT missing, surplus FROM eddy.verify_view('reach')" "0|0"

stop
rm -f $initdb/*

step "trust, without a password"
start "$work/trust" POSTGRES_HOST_AUTH_METHOD=trust
expect postgres '' postgres "SELECT current_user" postgres
stop
