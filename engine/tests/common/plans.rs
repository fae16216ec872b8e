//! Plans and rows for tests, built by hand. All columns are bigint.

use plan::expr::Expr;
use plan::row::Row;
use plan::types::TableName;
use plan::types::{Column, Scalar, Type};
use plan::value::Datum;
use plan::{JoinTree, Link, LocalId, Mfp, Plan, Recursion, Source, SourceId, ViewPlan};

pub const BIGINT: Type = Type::Scalar(Scalar::Int8);

pub fn row(values: &[i64]) -> Row {
    let values: Vec<Datum> = values.iter().map(|value| Datum::Int8(*value)).collect();
    Row::pack(&values)
}

pub fn ints(row: &Row) -> Vec<Option<i64>> {
    let int = |value| match value {
        Datum::Int8(value) => Some(value),
        Datum::Null => None,
        other => panic!("not a bigint: {other:?}"),
    };
    row.unpack().into_iter().map(int).collect()
}

pub fn column(name: &str) -> Column {
    Column { name: name.to_owned(), ty: BIGINT, typmod: -1, nullable: true }
}

/// A view over sources with the given numbers of columns.
pub fn view(arities: &[usize], root: Plan, arity: usize) -> ViewPlan {
    let columns = |n: usize| (0..n).map(|i| column(&format!("c{i}"))).collect::<Vec<_>>();
    let source = |(i, arity): (usize, &usize)| Source {
        table: TableName { schema: None, name: format!("t{i}"), only: false },
        columns: (0..*arity).collect(),
        schema: columns(*arity),
    };
    ViewPlan {
        sources: arities.iter().enumerate().map(source).collect(),
        root,
        columns: columns(arity),
        key: None,
        locals: Vec::new(),
    }
}

pub fn source(id: usize) -> Plan {
    Plan::Source(SourceId(id))
}

pub fn get(id: usize) -> Plan {
    Plan::Get(LocalId(id))
}

pub fn col(i: usize) -> Expr {
    Expr::Column(i)
}

pub fn project(input_arity: usize, project: &[usize]) -> Mfp {
    Mfp { input_arity, maps: vec![], filter: vec![], project: project.to_vec() }
}

pub fn map(input: Plan, mfp: Mfp) -> Plan {
    Plan::Mfp { input: Box::new(input), mfp }
}

pub fn union(inputs: Vec<Plan>) -> Plan {
    Plan::Union { inputs }
}

pub fn distinct(input: Plan) -> Plan {
    Plan::Distinct { input: Box::new(input) }
}

/// Join on one column of each side.
pub fn join(left: (Plan, usize), right: (Plan, usize), closure: Mfp) -> Plan {
    Plan::Join {
        left: Box::new(left.0),
        right: Box::new(right.0),
        left_key: vec![col(left.1)],
        right_key: vec![col(right.1)],
        closure,
    }
}

/// A chain of inputs of two columns, each tied by its first column to the last column of the one before.
pub fn chain(inputs: Vec<Plan>, closure: Mfp) -> Plan {
    let link = |earlier| Link { earlier, earlier_key: vec![col(1)], own_key: vec![col(0)] };
    let links = (0..inputs.len() - 1).map(link).collect();
    let tree = JoinTree { arities: vec![2; inputs.len()], links };
    Plan::DeltaJoin { inputs, tree, closure }
}

pub fn letrec(id: usize, recursion: Recursion, base: Plan, step: Plan, body: Plan) -> Plan {
    Plan::LetRec {
        id: LocalId(id),
        recursion,
        base: Box::new(base),
        step: Box::new(step),
        body: Box::new(body),
    }
}

/// Nodes reachable from those of source 1 over the edges of source 0.
pub fn reach(recursion: Recursion) -> ViewPlan {
    view(&[2, 1], letrec(0, recursion, source(1), reach_step(), get(0)), 1)
}

/// Nodes one edge of source 0 away from those of local 0.
pub fn reach_step() -> Plan {
    join((get(0), 0), (source(0), 0), project(3, &[2]))
}

pub fn cross(left: Plan, right: Plan, closure: Mfp) -> Plan {
    Plan::Join {
        left: Box::new(left),
        right: Box::new(right),
        left_key: vec![],
        right_key: vec![],
        closure,
    }
}

/// Every form of recursion, for rows of one column.
pub fn all_forms() -> [Recursion; 4] {
    [
        Recursion::FixpointDistinct,
        Recursion::FixpointAll,
        Recursion::WorkingTableAll,
        Recursion::WorkingTableDistinct { key: vec![col(0)] },
    ]
}
