#!/usr/bin/env bash
# install.sh install|symbols|uninstall PG_CONFIG PRODUCT [DESTDIR]
# Installs what `make` has left in the folder PRODUCT, and the scripts and texts of this clone, into a PostgreSQL, or takes
# them out of it. Calls neither cargo nor a compiler, and needs no more rights than the folders do.
set -euo pipefail

action=$1 pg_config=$2 product=$3 root=${4:-}
clone=$(cd "$(dirname "$0")/../.." && pwd)
texts=(README.md CHANGELOG.md SECURITY.md LICENSE)

libraries=$root$("$pg_config" --pkglibdir)
extensions=$root$("$pg_config" --sharedir)/extension
documents=$root$("$pg_config" --docdir)/extension/pg_eddy

# The library is renamed into place: a server that runs keeps the file that it has loaded.
install_files() {
    if [ ! -f "$product/pg_eddy.so" ]; then
        echo "nothing is built for $("$pg_config" --version): run make PG_CONFIG=$pg_config first," \
            "as the user who builds" >&2
        exit 1
    fi
    install -d -m 755 "$libraries" "$extensions" "$documents"
    # Beside the library, which looks for it there.
    for file in pg_eddy_engine pg_eddy.so; do
        install -m 755 "$product/$file" "$libraries/$file.new"
        mv -f "$libraries/$file.new" "$libraries/$file"
    done
    # Scripts of another version stay away: ALTER EXTENSION would find ways through them that this one does not know.
    rm -f "$extensions"/pg_eddy--*.sql
    install -m 644 "$clone"/sql/pg_eddy.control "$clone"/sql/pg_eddy--*.sql "$extensions/"
    install -m 644 "${texts[@]/#/$clone/}" "$documents/"
}

# Folders go with what was in them: below DESTDIR all that are empty, in a PostgreSQL those of the texts.
uninstall_files() {
    rm -f "$libraries"/pg_eddy{.so,.so.debug,_engine}
    rm -f "$extensions/pg_eddy.control" "$extensions"/pg_eddy--*.sql
    rm -f "${texts[@]/#/$documents/}"
    remove_empty "$documents" "$root$("$pg_config" --docdir)"
    if [ -n "$root" ]; then
        remove_empty "$documents" "$root"
        remove_empty "$extensions" "$root"
        remove_empty "$libraries" "$root"
    fi
}

# remove_empty FOLDER TOP: removes a folder and those above it, up to TOP, that have nothing in them.
remove_empty() {
    local folder=$1
    while [[ $folder == "${2%/}"/* ]] && { [ ! -d "$folder" ] || rmdir "$folder" 2>/dev/null; }; do
        folder=$(dirname "$folder")
    done
}

# A debugger, and the library itself when it writes a backtrace, look for them beside the library.
install_symbols() {
    install -d -m 755 "$libraries"
    install -m 644 "$product/pg_eddy.so.debug" "$libraries/"
}

case $action in
    install) install_files ;;
    symbols) install_symbols ;;
    uninstall) uninstall_files ;;
    *) echo "install.sh: $action is none of install, symbols, uninstall" >&2; exit 1 ;;
esac
