#!/usr/bin/env bash
# inside.sh MAJOR PACKAGE NEWER SYMBOLS: the life of the package in a fresh Debian, as root of that Debian, without a network. Ends at the first
# thing that is not so. What psql prints in the session of /packages/session.sql is in /packages/session.out.
set -euo pipefail

major=$1 package=$2 newer=$3 symbols=$4
name=postgresql-$major-pg-eddy
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

step() { echo "== $*"; }
install_package() { apt-get install -qqy --no-install-recommends "/packages/$1" </dev/null; }
server() { pg_ctlcluster "$major" main "$@"; }
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups env --chdir=/tmp HOME=/tmp "$@"; }
sql() { as_postgres psql -XAtq --set=ON_ERROR_STOP=1 --dbname="${2:-session}" --command="$1"; }

expect() {
    local found
    found=$(sql "$1")
    [ "$found" = "$2" ] || { echo "$1 gives $found, not $2" >&2; exit 1; }
}

# The view of the session, which has 16 rows, follows changes.
expect_maintained() {
    expect "SELECT count(*) FROM reach" 16
    sql "INSERT INTO edge VALUES (4, 5)"
    expect "SELECT count(*) FROM reach" 20
    sql "DELETE FROM edge WHERE dst = 5"
    expect "SELECT count(*) FROM reach" 16
    expect "SELECT missing, surplus FROM eddy.verify_view('reach')" "0|0"
}

step install
install_package "$package"
[ -e "/usr/share/doc/$name/copyright" ]
# The network is that of the machine.
pg_conftool "$major" main set listen_addresses ''
server start
as_postgres createdb session
# Without preloading the extension says what to set.
sql "CREATE EXTENSION pg_eddy" 2>&1 | grep -q 'HINT:.*shared_preload_libraries'
sql "DROP EXTENSION pg_eddy"
pg_conftool "$major" main set shared_preload_libraries pg_eddy
pg_conftool "$major" main set wal_level logical
server restart

step "README's session"
# With the SQL objects of the oldest version, to be updated along with the package.
available="SELECT version FROM pg_available_extension_versions WHERE name = 'pg_eddy'"
oldest=$(sql "$available" | sort --version-sort | head -n 1)
newest=$(sql "SELECT default_version FROM pg_available_extensions WHERE name = 'pg_eddy'")
sql "CREATE EXTENSION pg_eddy VERSION '$oldest'"
as_postgres psql -Xq session </packages/session.sql >/packages/session.out 2>&1
expect_maintained

step restart
server restart
expect_maintained

step upgrade
before=$(dpkg-query --show --showformat='${Version}' "$name")
install_package "$newer"
after=$(dpkg-query --show --showformat='${Version}' "$name")
dpkg --compare-versions "$before" lt "$after"
# The server goes on with the library that it has loaded, new sessions included.
expect_maintained
server restart
expect_maintained
sql "ALTER EXTENSION pg_eddy UPDATE"
expect "SELECT extversion FROM pg_extension WHERE extname = 'pg_eddy'" "$newest"
expect_maintained

step symbols
install_package "$symbols"
file=$(dpkg-query --listfiles "$name-dbgsym" | grep '\.debug$')
[ -f "$file" ]

step removal
sql "DROP EXTENSION pg_eddy"
expect "SELECT count(*) FROM reach" 16
pg_conftool "$major" main remove shared_preload_libraries
apt-get purge -qqy "$name" "$name-dbgsym" </dev/null
server restart
expect "SELECT count(*) FROM reach" 16
server stop
left=$(find / -xdev \( -path /proc -o -path /packages -o -path /var/lib/postgresql -o -path /var/log \
    -o -path /tmp \) -prune -o \( -name '*pg_eddy*' -o -name '*pg-eddy*' \) -print)
[ -z "$left" ] || { echo "purging leaves $left" >&2; exit 1; }
if dpkg-query --show "$name" 2>/dev/null; then echo "dpkg still knows $name" >&2; exit 1; fi
