#!/bin/bash
# engine.sh: an engine of a cluster, in place of a server. It listens at ENGINE_PORT and has the secret ENGINE_SECRET.
set -euo pipefail

: "${ENGINE_SECRET:?is what all engines and the server have}"

if [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- env HOME=/var/lib/postgresql "$0"
fi
umask 077
secret=$(mktemp)
printf '%s\n' "$ENGINE_SECRET" >"$secret"
exec "/usr/lib/postgresql/$PG_MAJOR/lib/pg_eddy_engine" --listen "0.0.0.0:${ENGINE_PORT:-7101}" --secret-file "$secret"
