# For the entry point of the primary, which sources it: whom a standby connects as, and the secret of the engines if there are any.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" \
    --set=password="$REPLICATION_PASSWORD" <<'SQL'
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
CREATE EXTENSION pg_eddy;
SQL
echo 'host replication replicator all scram-sha-256' >>"$PGDATA/pg_hba.conf"
if [ -n "${ENGINE_SECRET:-}" ]; then
    (umask 077 && printf '%s\n' "$ENGINE_SECRET" >"$PGDATA/pg_eddy_engine.secret")
fi
