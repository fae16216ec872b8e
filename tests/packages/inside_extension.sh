#!/bin/bash
# inside_extension.sh MAJOR: a server without the package, with the image of the extension mounted at /extensions/pg_eddy.
set -euo pipefail

bin=/usr/lib/postgresql/$1/bin
work=$(mktemp -d)
chown postgres "$work"
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups env --chdir="$work" HOME="$work" "$@"; }
sql() { as_postgres psql -XAtq --set=ON_ERROR_STOP=1 --host="$work" --dbname=postgres --command="$1"; }

as_postgres "$bin/initdb" --pgdata="$work/data" --auth=trust --locale=C.UTF-8 >/dev/null
cat >>"$work/data/postgresql.conf" <<SETTINGS
listen_addresses = ''
unix_socket_directories = '$work'
extension_control_path = '\$system:/extensions/pg_eddy/share'
dynamic_library_path = '\$libdir:/extensions/pg_eddy/lib'
shared_preload_libraries = 'pg_eddy'
wal_level = logical
SETTINGS
as_postgres "$bin/pg_ctl" --pgdata="$work/data" --wait --log="$work/log" start >/dev/null || { cat "$work/log" >&2; exit 1; }
sql "CREATE EXTENSION pg_eddy; CREATE TABLE t (a int PRIMARY KEY)"
sql "CREATE INCREMENTAL VIEW v AS SELECT count(*) AS n FROM t"
sql "INSERT INTO t SELECT generate_series(1, 7)"
[ "$(sql "SELECT n FROM v")" = 7 ]
as_postgres "$bin/pg_ctl" --pgdata="$work/data" --wait --mode=fast stop >/dev/null
