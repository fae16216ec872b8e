#!/bin/bash
# install.sh MAJOR: runs once, while the image is made. Installs PostgreSQL, unless the base image has it, and the package, and has
# new clusters preload it.
set -euo pipefail

major=$1
export DEBIAN_FRONTEND=noninteractive

# The entry point makes the only cluster.
mkdir -p /etc/postgresql-common
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf

packages=(/tmp/packages/*.deb)
if [ ! -x "/usr/lib/postgresql/$major/bin/postgres" ]; then
    apt-get update -q
    packages+=("postgresql-$major")
fi
apt-get install -qy --no-install-recommends "${packages[@]}" </dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb

cat >>"/usr/share/postgresql/$major/postgresql.conf.sample" <<'SETTINGS'

# Of this image.
listen_addresses = '*'
shared_preload_libraries = 'pg_eddy'
wal_level = logical
SETTINGS

rm -rf /var/lib/postgresql /etc/postgresql/"$major"
mkdir -p /docker-entrypoint-initdb.d
for folder in /var/lib/postgresql "$PGDATA" /var/run/postgresql; do
    install -d -o postgres -g postgres -m 755 "$folder"
done
chmod 700 "$PGDATA"
