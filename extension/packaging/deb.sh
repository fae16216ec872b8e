#!/usr/bin/env bash
# deb.sh MAJOR PRODUCT OUTPUT
# Packs what `make` has left in the folder PRODUCT for PostgreSQL MAJOR as Debian packages in the folder OUTPUT:
# postgresql-MAJOR-pg-eddy, and its symbols in postgresql-MAJOR-pg-eddy-dbgsym. The version is that of the control file;
# DEB_REVISION (1) tells packages of one version apart, DEBFULLNAME and DEBEMAIL say who has made them.
#
# It calls dpkg's own programs and no debhelper: there is nothing to compile, so what debhelper would do here are the
# twenty lines of this script that make two folders.
set -euo pipefail

major=$1 product=$2 output=$3
clone=$(cd "$(dirname "$0")/../.." && pwd)
texts=$clone/extension/packaging/debian
package=postgresql-$major-pg-eddy
version=$(sed -n "s/^default_version = '\(.*\)'$/\1/p" "$clone/sql/pg_eddy.control")-${DEB_REVISION:-1}
maintainer="${DEBFULLNAME:-The pg_eddy authors} <${DEBEMAIL:-pg_eddy@users.noreply.github.com}>"
architecture=$(dpkg --print-architecture)
# The same files give the same packages.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(stat -c %Y "$product/pg_eddy.so")}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

# The folders of Debian's PostgreSQL, whatever the PostgreSQL is that was built against.
main_package() {
    local root=$work/main documents=$work/main/usr/share/doc/$package
    local libraries=$root/usr/lib/postgresql/$major/lib
    local extensions=$root/usr/share/postgresql/$major/extension
    mkdir -p "$libraries" "$extensions" "$documents"
    install -m 644 "$product/pg_eddy.so" "$libraries/"
    install -m 755 "$product/pg_eddy_engine" "$libraries/"
    # The one section that has a path of this machine: the symbols are found by the library's build id.
    objcopy --remove-section .gnu_debuglink "$libraries/pg_eddy.so"
    install -m 644 "$clone"/sql/pg_eddy.control "$clone"/sql/pg_eddy--*.sql "$extensions/"
    install -m 644 "$clone/README.md" "$clone/SECURITY.md" "$documents/"
    install -m 644 "$clone/extension/packaging/debian/README.Debian" "$documents/"
    sed "s/@MAJOR@/$major/g" -i "$documents/README.Debian"
    sed "s/^/ /; s/^ $/ ./" "$clone/LICENSE" | cat "$texts/copyright" - >"$documents/copyright"
    gzip -9n <"$clone/CHANGELOG.md" >"$documents/changelog.gz"
    gzip -9n <"$product/third-party-licences.txt" >"$documents/third-party-licences.txt.gz"
    changelog | gzip -9n >"$documents/changelog.Debian.gz"
    control "$root" "$package" "postgresql-$major, $(dependencies "$libraries/pg_eddy.so" "$libraries/pg_eddy_engine")" \
        database optional "" "$texts/description"
}

symbols_package() {
    local root=$work/symbols id
    id=$(readelf -n "$product/pg_eddy.so" | sed -n 's/.*Build ID: //p')
    install -D -m 644 "$product/pg_eddy.so.debug" \
        "$root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
    mkdir -p "$root/usr/share/doc"
    ln -s "$package" "$root/usr/share/doc/$package-dbgsym"
    control "$root" "$package-dbgsym" "$package (= $version)" debug optional \
        "Auto-Built-Package: debug-symbols
Build-Ids: $id" "$texts/description-dbgsym"
}

# The C library and the like, with the versions that the library asks for.
dependencies() {
    mkdir -p "$work/source/debian"
    printf 'Source: pg-eddy\n\nPackage: %s\nArchitecture: any\n' "$package" >"$work/source/debian/control"
    (cd "$work/source" && dpkg-shlibdeps -O --warnings=0 "$@") | sed -n 's/^shlibs:Depends=//p'
}

# As Debian wants it; what changed is in the other changelog.
changelog() {
    printf 'pg-eddy (%s) unstable; urgency=medium\n\n  * New version: see changelog.gz.\n\n -- %s  %s\n' \
        "$version" "$maintainer" "$(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")"
}

# control ROOT PACKAGE DEPENDS SECTION PRIORITY MORE_FIELDS DESCRIPTION
control() {
    local root=$1 name=$2 depends=$3 section=$4 priority=$5 more=$6 description=$7
    mkdir -p "$root/DEBIAN"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    {
        printf 'Package: %s\nSource: pg-eddy\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' \
            "$name" "$version" "$architecture" "$maintainer"
        printf 'Installed-Size: %s\nDepends: %s\n' "$(du -sk "$root/usr" | cut -f1)" "$depends"
        printf 'Section: %s\nPriority: %s\n' "$section" "$priority"
        [ -z "$more" ] || printf '%s\n' "$more"
        printf 'Description: '
        sed "s/@MAJOR@/$major/g" "$description"
    } >"$root/DEBIAN/control"
    mkdir -p "$output"
    # An image takes the one that is there.
    rm -f "$output/${name}"_*.deb
    dpkg-deb --root-owner-group --build "$root" "$output/${name}_${version}_$architecture.deb"
}

main_package
symbols_package
