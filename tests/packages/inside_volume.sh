#!/bin/bash
# inside_volume.sh MAJOR STEP: one container in the life of a data folder, the volume at $PGDATA; of each step there is
# a function. Steps come one after the other, each in a new container: of the image, or of the base image, which has no pg_eddy.
set -euo pipefail
. "$(dirname "$0")/life.sh"

major=$1
export PATH=/usr/lib/postgresql/$major/bin:$PATH
# The network is that of the machine.
export PGPORT=$((20000 + $$ % 20000))
server=0
log=$(mktemp)

# By the entry point, with what it is given.
start() {
    entrypoint.sh "$@" -c listen_addresses= -c port="$PGPORT" >"$log" 2>&1 &
    await_server
}

# As any server, for the base image knows no entry point.
start_plain() {
    install -d -o postgres -g postgres /var/run/postgresql
    "${postgres_user[@]}" postgres -D "$PGDATA" -c listen_addresses= -c port="$PGPORT" "$@" >"$log" 2>&1 &
    await_server
}

await_server() {
    server=$!
    wait_for answers
}

answers() {
    kill -0 "$server" 2>/dev/null || fail "the server ends: $(tail "$log")"
    # Not while the entry point makes a cluster.
    [ "$(head -n 1 "$PGDATA/postmaster.pid" 2>/dev/null)" = "$server" ] && pg_isready --quiet
}

stop() {
    kill -INT "$server"
    wait "$server" || fail "the server ends with $?"
}

session() {
    POSTGRES_PASSWORD=secret start
    for database in session former; do sql postgres "CREATE DATABASE $database"; done
    sql session "CREATE EXTENSION pg_eddy"
    # With the SQL objects that an image of the oldest version has made.
    sql former "CREATE EXTENSION pg_eddy VERSION '$(oldest_objects)'"
    for database in session former; do readme_session $database; done
    expect_maintained session former
    # One from which the extension will be dropped when there is no library.
    sql postgres "CREATE DATABASE dropped"
    sql dropped "CREATE EXTENSION pg_eddy" "CREATE TABLE edge (src int PRIMARY KEY)"
    sql dropped "CREATE INCREMENTAL VIEW sources AS SELECT count(*) FROM edge"
    stop
}

restart() {
    start
    expect_maintained session former
    stop
}

upgrade() {
    start
    expect_maintained session
    update former
    stop
}

# What made the cluster has it preload the library.
without_library() {
    local told
    if told=$(as_postgres postgres -D "$PGDATA" -c listen_addresses= -c port="$PGPORT" 2>&1); then fail "the server runs"; fi
    expect_missing FATAL "$told"
    # Nobody maintains the views, and nothing but eddy.views and the like says so.
    start_plain -c shared_preload_libraries=
    sql session "INSERT INTO edge VALUES (4, 5)"
    expect session "SELECT count(*) FROM reach" 16
    told=$(sql session "SELECT state FROM eddy.views" 2>&1) && fail "eddy.views needs no library"
    expect_missing ERROR "$told"
    # The label stays.
    sql dropped "DROP EXTENSION pg_eddy"
    expect dropped "SELECT split_part(label, ' ', 1) FROM pg_seclabels" incremental
    stop
}

# Nothing is lost, and what has been written meanwhile is not overlooked.
found_again() {
    start
    expect session "SELECT count(*) FROM reach" 20
    sql session "DELETE FROM edge WHERE dst = 5"
    expect_maintained session former
    # What comes back knows no view of the former.
    sql dropped "CREATE EXTENSION pg_eddy"
    expect dropped "SELECT count(*) FROM pg_seclabels" 0
    expect dropped "SELECT count(*) FROM eddy.views" 0
    stop
}

removal() {
    start
    for database in session former dropped; do sql $database "DROP EXTENSION pg_eddy"; done
    expect_plain session former
    # Notes of which views were at work.
    wait_for [ ! -e "$PGDATA/pg_eddy" ]
    # Not ALTER SYSTEM RESET: the value is in postgresql.conf.
    sed -i "s/^shared_preload_libraries = 'pg_eddy'/#&/" "$PGDATA/postgresql.conf"
    stop
}

plain() {
    start_plain
    expect postgres "SHOW shared_preload_libraries" ''
    expect_plain session former
    stop
}

step "$2"
"$2"
