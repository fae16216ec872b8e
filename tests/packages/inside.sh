#!/usr/bin/env bash
# inside.sh MAJOR PACKAGE NEWER SYMBOLS: the life of the package in a fresh Debian, as root of that Debian, without a network. Ends at the first
# thing that is not so. What psql prints in README's session is left for comparison, see life.sh.
set -euo pipefail
. "$(dirname "$0")/life.sh"

major=$1 package=$2 newer=$3 symbols=$4
name=postgresql-$major-pg-eddy
data=/var/lib/postgresql/$major/main
export DEBIAN_FRONTEND=noninteractive

install_package() { apt-get install -qqy --no-install-recommends "/packages/$1" </dev/null; }
purge() { apt-get purge -qqy "$@" </dev/null; }
server() { pg_ctlcluster "$major" main "$@"; }
setting() { pg_conftool "$major" main "$@"; }
server_process() { head -n 1 "$data/postmaster.pid"; }

# expect_warning WORD: CREATE EXTENSION says that the views will not be maintained, and what to set.
expect_warning() {
    local told
    told=$(sql session "CREATE EXTENSION pg_eddy" 2>&1)
    [[ $told == *WARNING:*HINT:*$1* ]] || fail "CREATE EXTENSION says nothing of $1: $told"
    sql session "DROP EXTENSION pg_eddy"
}

step install
install_package "$package"
[ -e "/usr/share/doc/$name/copyright" ]
# The network is that of the machine.
setting set listen_addresses ''
server start
as_postgres createdb session
as_postgres createdb former
expect_warning shared_preload_libraries
setting set shared_preload_libraries pg_eddy
server restart
expect_warning wal_level
setting set wal_level logical
server restart

step "README's session"
[ -z "$(sql session "CREATE EXTENSION pg_eddy" 2>&1)" ] || fail "CREATE EXTENSION warns"
expect_objects session "$(newest_objects)"
# With the SQL objects of the oldest version, to be updated along with the package.
sql former "CREATE EXTENSION pg_eddy VERSION '$(oldest_objects)'"
for database in session former; do readme_session $database; done
expect_maintained session former

step restart
server restart
expect_maintained session former

step upgrade
before=$(dpkg-query --show --showformat='${Version}' "$name")
process=$(server_process)
install_package "$newer"
after=$(dpkg-query --show --showformat='${Version}' "$name")
dpkg --compare-versions "$before" lt "$after"
# The server goes on with the library that it has loaded, new sessions included.
[ "$(server_process)" = "$process" ]
grep -q '/pg_eddy\.so.*(deleted)$' "/proc/$process/maps"
expect_maintained session former
server restart
expect_maintained session
update former

step symbols
install_package "$symbols"
file=$(dpkg-query --listfiles "$name-dbgsym" | grep '\.debug$')
[ -f "$file" ]

step "removal, with nothing done before"
purge "$name" "$name-dbgsym"
# The view goes on with its worker, and functions that look for the file do not.
expect_fresh session
told=$(sql session "SELECT state FROM eddy.views" 2>&1) && fail "eddy.views needs no library"
expect_missing ERROR "$told"
server stop
told=$(server start 2>&1) && fail "the server starts without the library"
expect_missing FATAL "$told"
# Nothing is lost: what comes back finds its views.
install_package "$newer"
server start
expect_maintained session former

step removal
for database in session former; do sql $database "DROP EXTENSION pg_eddy"; done
expect_plain session former
# Notes of which views were at work.
wait_for [ ! -e "$data/pg_eddy" ]
setting remove shared_preload_libraries
setting remove wal_level
purge "$name"
server restart
expect_plain session former
server stop
left=$(find / -xdev \( -path /proc -o -path /packages -o -path /var/log -o -path /tmp \) -prune -o \
    \( -name '*pg_eddy*' -o -name '*pg-eddy*' \) -print)
[ -z "$left" ] || fail "purging leaves $left"
if dpkg-query --show "$name" 2>/dev/null; then fail "dpkg still knows $name"; fi
