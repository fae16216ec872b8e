//! What a round did, as data: it can be replayed with parts left out, and printed for psql.

use std::collections::BTreeSet;

use super::shrink::minimize;

/// One statement. The rows of an INSERT are apart, so that some can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    head: String,
    rows: Vec<String>,
    tail: &'static str,
}

impl Statement {
    pub fn plain(sql: impl Into<String>) -> Statement {
        Statement { head: sql.into(), rows: Vec::new(), tail: "" }
    }

    /// An INSERT; rows whose key is there are left out if `has_key`.
    pub fn insert(table: &str, rows: Vec<String>, has_key: bool) -> Statement {
        let tail = if has_key { " ON CONFLICT DO NOTHING" } else { "" };
        Statement { head: format!("INSERT INTO {table} VALUES "), rows, tail }
    }

    pub fn sql(&self) -> String {
        format!("{}{}{}", self.head, self.rows.join(", "), self.tail)
    }

    /// Whether it begins or ends a transaction.
    fn is_control(&self) -> bool {
        self.head.starts_with("BEGIN") || matches!(self.head.as_str(), "COMMIT" | "ROLLBACK")
    }
}

/// What one of two sessions does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub session: usize,
    pub statement: Statement,
}

/// Steps from a moment when no session is in a transaction to the next such moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub steps: Vec<Step>,
    /// The view that it creates, drops or reads.
    pub view: Option<String>,
    /// Whether all it does is to wait until the view is right, which may matter where time does.
    is_read: bool,
}

impl Unit {
    pub fn transactions(steps: Vec<Step>) -> Unit {
        Unit { steps, view: None, is_read: false }
    }

    pub fn single(statement: Statement, view: Option<&str>) -> Unit {
        let steps = vec![Step { session: 0, statement }];
        Unit { steps, view: view.map(str::to_owned), is_read: false }
    }

    pub fn read(view: &str) -> Unit {
        let statement = Statement::plain(format!("SELECT count(*) FROM {view}"));
        Unit { is_read: true, ..Unit::single(statement, Some(view)) }
    }

    /// One transaction after the other in the order in which they end, all in one session.
    fn in_one_session(&self) -> Unit {
        let last = |session| self.steps.iter().rposition(|step| step.session == session);
        let order = if last(0) <= last(1) { [0, 1] } else { [1, 0] };
        let of = |session| self.steps.iter().filter(move |step| step.session == session);
        let steps = order.into_iter().flat_map(of);
        let steps = steps.map(|step| Step { session: 0, ..step.clone() }).collect();
        Unit { steps, ..self.clone() }
    }

    fn has_control(&self) -> bool {
        self.steps.iter().any(|step| step.statement.is_control())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    pub units: Vec<Unit>,
}

/// A step: the numbers of its unit and within that. A row has one more.
type StepId = (usize, usize);
type RowId = (StepId, usize);

impl Case {
    /// A smaller case of which `fails` still holds; `None` if it holds of none that does all this one does.
    pub fn shrink(&self, view: &str, mut fails: impl FnMut(&Case) -> bool) -> Option<Case> {
        let mut case = self.simpler(view).into_iter().find(|case| fails(case))?;
        loop {
            let before = case.clone();
            let units = minimize(case.units.clone(), |units| fails(&Case { units: units.into() }));
            case = Case { units };
            let steps = minimize(case.steps(), |kept| fails(&case.with_steps(kept)));
            case = case.with_steps(&steps);
            let controlled = minimize(case.controlled(), |kept| fails(&case.with_control(kept)));
            case = case.with_control(&controlled);
            let rows = minimize(case.rows(), |kept| fails(&case.with_rows(kept)));
            case = case.with_rows(&rows);
            if case == before {
                return Some(case);
            }
        }
    }

    /// The simplest forms that may fail first; the last one is the case itself.
    fn simpler(&self, view: &str) -> Vec<Case> {
        let views = self.views_behind(view);
        let own = self.without_units(|unit| unit.view.as_ref().is_some_and(|v| !views.contains(v)));
        let sequential = Case { units: own.units.iter().map(Unit::in_one_session).collect() };
        vec![sequential.without_units(|unit| unit.is_read), sequential, own, self.clone()]
    }

    /// The view and those that it reads, directly or not.
    fn views_behind(&self, view: &str) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = [view.to_owned()].into();
        // A view reads earlier ones only.
        for unit in self.units.iter().rev() {
            if unit.view.as_ref().is_some_and(|view| found.contains(view)) {
                let text: String = unit.steps.iter().map(|step| step.statement.sql()).collect();
                let views = self.units.iter().filter_map(|unit| unit.view.as_ref());
                found.extend(views.filter(|view| mentions(&text, view)).cloned());
            }
        }
        found
    }

    fn without_units(&self, is_left_out: impl Fn(&Unit) -> bool) -> Case {
        Case { units: self.units.iter().filter(|unit| !is_left_out(unit)).cloned().collect() }
    }

    /// The steps that can be left out one by one: a transaction that does not end would hide the rest.
    fn steps(&self) -> Vec<StepId> {
        self.all_steps()
            .filter(|(_, step)| !step.statement.is_control())
            .map(|(id, _)| id)
            .collect()
    }

    fn all_steps(&self) -> impl Iterator<Item = (StepId, &Step)> {
        let units = self.units.iter().enumerate();
        units.flat_map(|(u, unit)| {
            unit.steps.iter().enumerate().map(move |(s, step)| ((u, s), step))
        })
    }

    /// The case with these of its `steps` only.
    fn with_steps(&self, kept: &[StepId]) -> Case {
        self.filtered(|id, step| step.statement.is_control() || kept.contains(&id))
    }

    /// The units with a BEGIN.
    fn controlled(&self) -> Vec<usize> {
        (0..self.units.len()).filter(|&unit| self.units[unit].has_control()).collect()
    }

    /// The case with a BEGIN in these units only.
    fn with_control(&self, kept: &[usize]) -> Case {
        self.filtered(|(unit, _), step| !step.statement.is_control() || kept.contains(&unit))
    }

    fn rows(&self) -> Vec<RowId> {
        let of = |(id, step): (StepId, &Step)| {
            (0..step.statement.rows.len()).map(move |row| (id, row)).collect::<Vec<_>>()
        };
        self.all_steps().flat_map(of).collect()
    }

    /// The case with these of its `rows` only. An INSERT of none goes altogether.
    fn with_rows(&self, kept: &[RowId]) -> Case {
        let mut case = self.clone();
        for (u, unit) in case.units.iter_mut().enumerate() {
            for (s, step) in unit.steps.iter_mut().enumerate() {
                let mut number = 0..;
                step.statement
                    .rows
                    .retain(|_| number.next().is_some_and(|row| kept.contains(&((u, s), row))));
            }
        }
        case.filtered(|_, step| {
            !step.statement.head.ends_with(" VALUES ") || !step.statement.rows.is_empty()
        })
    }

    /// The case with some of its steps; units without any go as well.
    fn filtered(&self, is_kept: impl Fn(StepId, &Step) -> bool) -> Case {
        let filter = |(u, unit): (usize, &Unit)| {
            let steps = unit.steps.iter().enumerate().filter(|(s, step)| is_kept((u, *s), step));
            Unit { steps: steps.map(|(_, step)| step.clone()).collect(), ..unit.clone() }
        };
        let units = self.units.iter().enumerate().map(filter);
        Case { units: units.filter(|unit| !unit.steps.is_empty()).collect() }
    }

    /// How many statements there are.
    pub fn len(&self) -> usize {
        self.units.iter().map(|unit| unit.steps.len()).sum()
    }

    /// The statements, each on a line of its own; where two sessions are needed with the number of the session.
    pub fn text(&self) -> String {
        let needs_two = self.all_steps().any(|(_, step)| step.session != 0);
        let line = |(_, step): (StepId, &Step)| match needs_two {
            true => format!("/* session {} */ {};\n", step.session + 1, step.statement.sql()),
            false => format!("{};\n", step.statement.sql()),
        };
        self.all_steps().map(line).collect()
    }
}

/// Whether a statement names a relation.
pub fn mentions(sql: &str, name: &str) -> bool {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(session: usize, sql: &str) -> Step {
        Step { session, statement: Statement::plain(sql) }
    }

    fn case() -> Case {
        let rows = (0..9).map(|n| format!("({n})")).collect();
        let create = |name: &str, from: &str| {
            let sql = format!("CREATE INCREMENTAL VIEW {name} AS SELECT * FROM {from}");
            Unit::single(Statement::plain(sql), Some(name))
        };
        let steps = ["BEGIN", "SAVEPOINT s1", "DELETE 1", "DELETE 2", "COMMIT"];
        let mut overlapping: Vec<Step> = steps.iter().map(|sql| step(0, sql)).collect();
        overlapping.insert(2, step(1, "DELETE 3"));
        Case {
            units: vec![
                Unit::single(Statement::plain("CREATE TABLE t (a integer)"), None),
                Unit::single(Statement::insert("t", rows, true), None),
                create("v1", "t"),
                create("v2", "t"),
                create("v3", "v1"),
                Unit::read("v3"),
                Unit::transactions(overlapping),
            ],
        }
    }

    #[test]
    fn what_the_failure_needs_is_left() {
        let needed = ["CREATE TABLE", "(4)", "VIEW v1", "VIEW v3", "DELETE 2"];
        let small =
            case().shrink("v3", |case| needed.iter().all(|part| case.text().contains(part)));
        let expected = "CREATE TABLE t (a integer);\n\
            INSERT INTO t VALUES (4) ON CONFLICT DO NOTHING;\n\
            CREATE INCREMENTAL VIEW v1 AS SELECT * FROM t;\n\
            CREATE INCREMENTAL VIEW v3 AS SELECT * FROM v1;\n\
            DELETE 2;\n";
        assert_eq!(small.unwrap().text(), expected);
    }

    #[test]
    fn transactions_stay_whole_where_they_have_to() {
        let small = case().shrink("v3", |case| {
            ["BEGIN;", "DELETE 1;"].iter().all(|part| case.text().contains(part))
        });
        assert_eq!(small.unwrap().text(), "BEGIN;\nDELETE 1;\nCOMMIT;\n");
    }

    #[test]
    fn two_sessions_are_kept_if_one_does_not_do() {
        let small = case().shrink("v3", |case| case.text().contains("session 2"));
        assert_eq!(small.unwrap().text(), "/* session 2 */ DELETE 3;\n");
        assert!(case().shrink("v3", |_| false).is_none());
    }
}
