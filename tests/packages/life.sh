# What every way to install pg_eddy is tried with, as root of a fresh Debian or of a container: README's session, and whether its
# view is maintained, or is a plain one that knows nothing of pg_eddy. For scripts that read it in. psql finds the server by itself, or by PGPORT;
# /packages has the session, session.sql, and gets what psql prints in it, DATABASE.out.

export LC_ALL=C.UTF-8

# Whatever ends a script says where.
set -E
trap 'echo "${BASH_SOURCE[0]}, line $LINENO: $BASH_COMMAND" >&2' ERR

step() { echo "== $*"; }
fail() { echo "$*" >&2; exit 1; }

# wait_for COMMAND...: until it succeeds.
wait_for() {
    local end=$((SECONDS + 60))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "a minute is over without $*"
        read -rt 0.1 <> <(:) || true
    done
}

postgres_user=(setpriv --reuid=postgres --regid=postgres --init-groups env --chdir=/tmp HOME=/tmp)
as_postgres() { "${postgres_user[@]}" "$@"; }

# sql DATABASE STATEMENT...: all of them in one session.
sql() {
    local statement commands=()
    for statement in "${@:2}"; do commands+=("--command=$statement"); done
    as_postgres psql -XAtq --set=ON_ERROR_STOP=1 --dbname="$1" "${commands[@]}"
}

# expect DATABASE QUERY RESULT
expect() {
    local found
    found=$(sql "$1" "$2")
    [ "$found" = "$3" ] || fail "in database $1, $2 gives $found, not $3"
}

readme_session() { as_postgres psql -Xq "$1" </packages/session.sql >"/packages/$1.out" 2>&1; }

# The versions of SQL objects that there are.
oldest_objects() {
    sql postgres "SELECT version FROM pg_available_extension_versions WHERE name = 'pg_eddy'" |
        sort --version-sort | head -n 1
}
newest_objects() { sql postgres "SELECT default_version FROM pg_available_extensions WHERE name = 'pg_eddy'"; }

# expect_objects DATABASE VERSION
expect_objects() { expect "$1" "SELECT extversion FROM pg_extension WHERE extname = 'pg_eddy'" "$2"; }

# expect_fresh DATABASE: the view of the session, which has 16 rows, follows changes.
expect_fresh() {
    expect "$1" "SELECT count(*) FROM reach" 16
    sql "$1" "INSERT INTO edge VALUES (4, 5)"
    expect "$1" "SELECT count(*) FROM reach" 20
    sql "$1" "DELETE FROM edge WHERE dst = 5"
    expect "$1" "SELECT count(*) FROM reach" 16
}

# expect_maintained DATABASE...
expect_maintained() {
    local database
    for database in "$@"; do
        expect_fresh "$database"
        expect "$database" "SELECT relation, state FROM eddy.views" "reach|live"
        expect "$database" "SELECT missing, surplus FROM eddy.verify_view('reach')" "0|0"
    done
}

# update DATABASE...: SQL objects of the oldest version become those of the newest while a view is at work, which goes on.
update() {
    local database pid worker="SELECT pid FROM eddy.activity"
    for database in "$@"; do
        expect_objects "$database" "$(oldest_objects)"
        expect_maintained "$database"
        pid=$(sql "$database" "$worker")
        sql "$database" "ALTER EXTENSION pg_eddy UPDATE"
        expect_objects "$database" "$(newest_objects)"
        expect_maintained "$database"
        expect "$database" "$worker" "$pid"
    done
}

# expect_missing LEVEL TEXT: PostgreSQL says that the library is not there.
expect_missing() { grep -q "$1: .*pg_eddy\".*No such file or directory" <<<"$2" || fail "not of a missing library: $2"; }

# expect_plain DATABASE...: the view is a materialized view as any, and the catalogs name nothing of the extension.
expect_plain() {
    local database
    for database in "$@"; do
        expect "$database" "SELECT count(*) FROM reach" 16
        sql "$database" "INSERT INTO edge VALUES (4, 5)"
        expect "$database" "SELECT count(*) FROM reach" 16
        sql "$database" "REFRESH MATERIALIZED VIEW reach"
        expect "$database" "SELECT count(*) FROM reach" 20
        sql "$database" "DELETE FROM edge WHERE dst = 5" "REFRESH MATERIALIZED VIEW reach"
        expect "$database" "SELECT count(*) FROM pg_extension WHERE extname = 'pg_eddy'" 0
        expect "$database" "SELECT count(*) FROM pg_seclabel" 0
        expect "$database" "SELECT count(*) FROM pg_namespace WHERE nspname = 'eddy'" 0
        expect "$database" "SELECT count(*) FROM pg_proc WHERE probin LIKE '%pg_eddy%'" 0
    done
    expect postgres "SELECT count(*) FROM pg_replication_slots" 0
}
