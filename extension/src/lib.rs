//! pg_eddy: SQL views that keep themselves up to date, as a PostgreSQL extension.

pgrx::pg_module_magic!(name, version);
