#!/bin/bash
# standby.sh [ARGUMENT...]: starts a standby of the server that PRIMARY_CONNINFO describes, in place of a server of its own; where the data
# folder is empty it copies that server's first.
set -euo pipefail

: "${PRIMARY_CONNINFO:?says where the primary is, such as host=primary user=replicator password=…}"

if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups -- \
        env HOME=/var/lib/postgresql "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    until pg_isready --quiet --dbname="$PRIMARY_CONNINFO"; do sleep 1; done
    # A copy that was interrupted is of no use.
    trap 'find "$PGDATA" -mindepth 1 -delete' EXIT
    pg_basebackup --dbname="$PRIMARY_CONNINFO" --pgdata="$PGDATA" --write-recovery-conf --checkpoint=fast
    trap - EXIT
fi
exec /usr/local/bin/entrypoint.sh postgres "$@"
