#!/bin/bash
# inside_compose.sh MAJOR: in a container of the image, the primary and the standby of the compose file, then the primary with engines: what it
# gives to them is in /packages/SERVICE.env and SERVICE.command. All are in one container, whose network is the machine's, so each has a port that another argument
# gives it, and the name of the primary leads to the container itself.
set -euo pipefail
. "$(dirname "$0")/life.sh"

port=$((20000 + $$ % 20000))
work=$(mktemp -d)
chmod 755 "$work"
more=()
echo '127.0.0.1 primary' >>/etc/hosts

# start SERVICE PORT [PROGRAM]: as Docker Compose does, with a data folder of its own. PROGRAM is the entry point where that is the image's.
start() {
    local service=$1 variables command
    mapfile -t variables <"/packages/$service.env"
    mapfile -t command <"/packages/$service.command"
    env PGDATA="$work/$service" "${variables[@]}" "${@:3}" "${command[@]}" -c port="$2" "${more[@]}" \
        >"$work/$service.log" 2>&1 &
    server=$!
    wait_for is_healthy "$2" "$work/$service.log"
}

# As the health check of the image asks.
is_healthy() {
    kill -0 "$server" 2>/dev/null || fail "the server ends: $(tail "$2")"
    pg_isready --quiet --host=127.0.0.1 --port="$1"
}

stop() {
    kill -INT "$1"
    wait "$1" || fail "the server ends with $?"
}

# The address that the exporter has, at another port.
address=$(sed -n 's/^DATA_SOURCE_NAME=//p' /packages/postgres-exporter.env)
# query PORT SQL
query() { psql -XAtq --set=ON_ERROR_STOP=1 --dbname="${address/:5432/:$1}" --command="$2"; }

start primary "$port" entrypoint.sh
primary=$server
query "$port" "CREATE TABLE edge (src int, dst int)"
query "$port" "CREATE INCREMENTAL VIEW targets AS SELECT dst, count(*) AS n FROM edge GROUP BY dst"
query "$port" "INSERT INTO edge VALUES (1, 2), (3, 2)"
[ "$(query "$port" "SELECT * FROM targets")" = "2|2" ]
[ "$(query "$port" "SELECT count(*) > 0 FROM eddy.metrics")" = t ]

# Its description of the primary names no port.
export PGPORT=$port
start standby $((port + 1))
[ "$(query $((port + 1)) "SELECT pg_is_in_recovery()")" = t ]
has_all() { [ "$(query $((port + 1)) "SELECT * FROM targets")" = "2|2" ]; }
wait_for has_all
stop "$server"
stop "$primary"

# Engines listen at ports of their own here, too.
hosts=() engines=()
for number in 1 2 3; do
    mapfile -t variables <"/packages/engine-$number.env"
    mapfile -t command <"/packages/engine-$number.command"
    env "${variables[@]}" ENGINE_PORT=$((port + 1 + number)) "${command[@]}" >"$work/engine-$number.log" 2>&1 &
    engines+=($!)
    hosts+=("127.0.0.1:$((port + 1 + number))")
done
more=(-c "eddy.engine_hosts=$(IFS=, && echo "${hosts[*]}")")
start primary-with-engines "$port" entrypoint.sh
query "$port" "CREATE TABLE edge (src int, dst int)"
query "$port" "INSERT INTO edge SELECT i, i + 1 FROM generate_series(1, 20) i"
query "$port" "CREATE INCREMENTAL VIEW reach AS WITH RECURSIVE r(n) AS (VALUES (1) UNION SELECT dst FROM r JOIN edge ON src = n) SELECT * FROM r"
[ "$(query "$port" "SELECT count(*) FROM reach")" = 21 ]
query "$port" "DELETE FROM edge WHERE src = 10"
[ "$(query "$port" "SELECT count(*) FROM reach")" = 10 ]
for number in 1 2 3; do
    grep -q "is a host" "$work/engine-$number.log" || fail "engine $number says $(cat "$work/engine-$number.log")"
done
stop "$server"
kill "${engines[@]}"
