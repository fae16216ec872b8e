//! What depends on a time zone: native in a catalog that tells the zone, refused in one that does not.

use plan::{explain, Zone};
use planner::plan_view;
use planner::sql::DdlCatalog;

/// An hour east of UTC, always.
fn zone(name: &str) -> Zone {
    serde_json::from_value(serde_json::json!({
        "name": name, "before": 3600, "changes": "", "repeats_before": false, "repeats_after": false,
    }))
    .expect("rules")
}

fn catalog(zone: Option<Zone>) -> DdlCatalog {
    let mut catalog = DdlCatalog::parse(
        "CREATE TABLE t (at timestamp with time zone, stamp timestamp, day date)",
    )
    .expect("a table");
    zone.into_iter().for_each(|zone| catalog.set_zone(zone));
    catalog
}

#[test]
fn expressions_show_their_zone() {
    for (sql, shown) in [
        ("(t.at)::date", "(at AT TIME ZONE 'Test')::date"),
        ("(t.at)::timestamp without time zone", "at AT TIME ZONE 'Test'"),
        ("(t.stamp)::timestamp with time zone", "stamp AT TIME ZONE 'Test'"),
        ("(t.at)::timestamp(3) without time zone", "(at AT TIME ZONE 'Test')::timestamp(3)"),
        ("(t.at AT TIME ZONE 'Test'::text)", "at AT TIME ZONE 'Test'"),
        ("timezone('Test'::text, t.stamp)", "stamp AT TIME ZONE 'Test'"),
        ("date_trunc('day'::text, t.at)", "date_trunc('day', at, 'Test')"),
        ("date_trunc('day'::text, t.at, 'Test'::text)", "date_trunc('day', at, 'Test')"),
        ("EXTRACT(hour FROM t.at)", "extract('hour', at, 'Test')"),
        ("(t.at - '1 mon'::interval)", "date_add(at, '-1 mons'::interval, 'Test')"),
        ("('01:00:00'::interval + t.stamp)", "stamp + '01:00:00'::interval"),
        ("(t.at < t.day)", "at < (day AT TIME ZONE 'Test')"),
        ("(t.stamp = t.at)", "(stamp AT TIME ZONE 'Test') = at"),
    ] {
        let plan = plan_view(&format!("SELECT {sql} AS x FROM t"), &catalog(Some(zone("Test"))));
        let text = explain(&plan.unwrap_or_else(|error| panic!("{sql}: {error:?}")));
        assert!(text.contains(shown), "{sql}: {text}");
        let is_native = !sql.contains("t.at") && sql.contains("interval");
        let plan = plan_view(&format!("SELECT {sql} AS x FROM t"), &catalog(None));
        assert_eq!(plan.is_ok(), is_native, "{sql}");
    }
}

#[test]
fn conditions_and_keys_may_depend_on_a_zone() {
    for sql in [
        "SELECT (t.at)::date AS d, count(*) AS n FROM t GROUP BY ((t.at)::date) HAVING ((t.at)::date > '2024-01-01'::date)",
        "SELECT a.day FROM t a JOIN t b ON ((a.day = b.at))",
        "SELECT a.day FROM t a LEFT JOIN t b ON (((a.at)::date = b.day))",
        "SELECT CASE (t.at)::date WHEN t.day THEN 1 ELSE 2 END AS x FROM t WHERE (t.day = t.at)",
    ] {
        let plan = plan_view(sql, &catalog(Some(zone("Test"))));
        let plan = plan.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        let json = serde_json::to_string(&plan).expect("a plan is serde");
        assert_eq!(plan, serde_json::from_str(&json).expect("and back"));
    }
}
