#!/usr/bin/env bash
# install.sh PG_CONFIG LIBRARY SQL_FOLDER [DESTDIR]
# Installs library, control file and SQL scripts. The library is renamed into place: a server that
# runs keeps the file it has loaded.
set -euo pipefail

pg_config=$1 library=$2 scripts=$3 root=${4:-}
libraries=$root$("$pg_config" --pkglibdir)
extensions=$root$("$pg_config" --sharedir)/extension

mkdir -p "$libraries" "$extensions"
install -m 755 "$library" "$libraries/pg_eddy.so.new"
mv -f "$libraries/pg_eddy.so.new" "$libraries/pg_eddy.so"
install -m 644 "$scripts"/*.control "$scripts"/*.sql "$extensions/"
