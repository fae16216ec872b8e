//! Reads inside transactions: a function that compares a view with its query where it is called, and raises an error of its own if they
//! differ.

use harness::comparison::comparison;

use super::sessions::OF_VIEWS;

/// The SQLSTATE of a difference.
pub const DIFFERS: &str = "ED001";

/// Creates the function. Errors that end the transaction are part of the game; others both sides must end with.
pub fn create_function() -> String {
    let settings = OF_VIEWS.replace(';', " ").replace(" =", " TO");
    let compare = comparison("%1$s", "%2$s");
    format!(
        "CREATE FUNCTION differs(view text, query text) RETURNS void LANGUAGE plpgsql {settings} AS $differs$
DECLARE
    missing bigint; surplus bigint; ends text[] := '{{}}'; statement text;
BEGIN
    BEGIN
        EXECUTE format($compare${compare}$compare$, view, query) INTO missing, surplus;
        IF (missing, surplus) = (0, 0) THEN RETURN; END IF;
        RAISE EXCEPTION '% misses % rows and has % surplus rows inside a transaction', view, missing, surplus
            USING ERRCODE = '{DIFFERS}';
    EXCEPTION
        WHEN SQLSTATE '{DIFFERS}' OR transaction_rollback OR lock_not_available THEN RAISE;
        WHEN others THEN NULL;
    END;
    FOREACH statement IN ARRAY ARRAY[format('SELECT count(q::text) FROM (%s) q', query),
        format('SELECT count(q::text) FROM %s q', view)]
    LOOP
        BEGIN
            EXECUTE statement;
            ends := ends || 'rows'::text;
        EXCEPTION
            WHEN transaction_rollback OR lock_not_available THEN RAISE;
            WHEN others THEN ends := ends || SQLSTATE;
        END;
    END LOOP;
    IF ends[1] <> ends[2] OR ends[1] = 'rows' THEN
        RAISE EXCEPTION '% ends with %, its query with % inside a transaction', view, ends[2], ends[1]
            USING ERRCODE = '{DIFFERS}';
    END IF;
END $differs$"
    )
}

/// Compares a view with its query.
pub fn read(view: &str, query: &str) -> String {
    format!("SELECT differs('{view}', $query${query}$query$)")
}
