//! Random queries that collect all values of a group in an order: aggregates that need them all, ARRAY over
//! subqueries, and set-returning functions that take such arrays apart.

use super::draws::Draws;
use super::expression::Field;
use super::feature::Feature;
use super::functions;
use super::order::sort;
use super::relation::{named, Query, Relation};
use super::types::Type;

/// What is collected of a relation, `i`.
struct Values {
    value: Field,
    /// By which values are grouped.
    key: Field,
    /// An item of ORDER BY: the value.
    sort: String,
    /// The type of an array of values.
    array: Type,
    /// FROM, where the relation has its alias.
    from: String,
}

/// Items of the select list, what follows it, and the items' types.
type Parts = (Vec<String>, String, Vec<Type>);

pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    let relation = Relation::random(dice, relations).clone();
    let scope = relation.fields("i");
    let fitting = |field: &&Field| matches!(field.kind, Type::Int4 | Type::Text);
    let values: Vec<Field> = scope.iter().filter(fitting).cloned().collect();
    if values.is_empty() || dice.chance(30) {
        return functions::random_query(dice, relations);
    }
    let (value, key) = (dice.pick(&values).clone(), dice.pick(&scope).clone());
    let array = if value.kind == Type::Int4 { Type::Int4Array } else { Type::TextArray };
    let sort = sort(dice, &value);
    let from = format!("FROM {} i", relation.name);
    let (items, rest, kinds) =
        Values { value, key, sort, array, from }.parts(dice, &relations[0].name);
    Query { sql: format!("SELECT {} {rest}", named(&items)), kinds }
}

impl Values {
    fn parts(&self, dice: &mut Draws, graph: &str) -> Parts {
        use Feature::*;
        let is_integer = i64::from(self.value.kind == Type::Int4);
        let rules = [
            (2, ArrayAgg),
            (2, Mode),
            (2 * is_integer, PercentileCont),
            (1, JsonbAgg),
            (1, OwnAggregate),
            (1, HypotheticalRank),
            (2, UnnestInFrom),
            (2, UnnestInList),
            (2, UnnestInGroups),
            (3, ArraySubquery),
        ];
        match dice.rule(&rules) {
            PercentileCont => self.percentile_cont(dice),
            JsonbAgg => self.jsonb_agg(),
            HypotheticalRank => self.hypothetical_rank(dice),
            OwnAggregate => self.own_aggregate(),
            ArrayAgg => self.array_agg(dice),
            Mode => self.mode(dice),
            UnnestInFrom => self.unnest_in_from(),
            UnnestInList => self.unnest_in_list(),
            UnnestInGroups => self.unnest_in_groups(dice),
            _ => self.array_subquery(dice, graph),
        }
    }

    /// An aggregate beside the key that it is grouped by.
    fn grouped(&self, aggregate: String, kind: Type) -> Parts {
        let items = vec![self.key.reference.clone(), aggregate];
        (items, self.grouping(), vec![self.key.kind, kind])
    }

    fn grouping(&self) -> String {
        format!("{} GROUP BY {}", self.from, self.key.reference)
    }

    /// Arrays of all values, by the key.
    fn arrays(&self) -> String {
        let (x, k, sort) = (&self.value.reference, &self.key.reference, &self.sort);
        format!("SELECT {k} AS k, array_agg({x} ORDER BY {sort}) AS xs {}", self.grouping())
    }

    fn percentile_cont(&self, dice: &mut Draws) -> Parts {
        let fraction = dice.pick(&["0", "0.25", "0.5", "1"]);
        let cont = format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY {})", self.sort);
        self.grouped(cont, Type::Float8)
    }

    fn jsonb_agg(&self) -> Parts {
        let call = format!("jsonb_agg({} ORDER BY {})", self.value.reference, self.sort);
        self.grouped(call, Type::Jsonb)
    }

    fn hypothetical_rank(&self, dice: &mut Draws) -> Parts {
        let value = self.value.kind.present(dice);
        self.grouped(format!("rank({value}) WITHIN GROUP (ORDER BY {})", self.sort), Type::Int8)
    }

    fn own_aggregate(&self) -> Parts {
        let x = &self.value.reference;
        let own = match self.value.kind {
            Type::Int4 => format!("xor_of({x})"),
            _ => format!("joined({x} ORDER BY {})", self.sort),
        };
        self.grouped(own, self.value.kind)
    }

    fn array_agg(&self, dice: &mut Draws) -> Parts {
        dice.record(Feature::StringAgg);
        let (x, k) = (&self.value.reference, &self.key.reference);
        let plain = format!("string_agg(({x})::text, ',' ORDER BY ({x})::text)");
        let by_collation = format!("string_agg(DISTINCT ({x})::text COLLATE \"und-x-icu\", ',')");
        let items = vec![k.clone(), format!("array_agg(DISTINCT {x})"), plain, by_collation];
        let kinds = vec![self.key.kind, self.array, Type::Text, Type::Icu];
        (items, self.grouping(), kinds)
    }

    fn mode(&self, dice: &mut Draws) -> Parts {
        dice.record(Feature::PercentileDisc);
        let fraction = dice.pick(&["0", "0.3", "0.5", "1"]);
        let within = format!("WITHIN GROUP (ORDER BY {})", self.sort);
        let items =
            vec![format!("percentile_disc({fraction}) {within}"), format!("mode() {within}")];
        (items, self.grouping(), vec![self.value.kind, self.value.kind])
    }

    fn unnest_in_from(&self) -> Parts {
        let items = vec!["q.k".to_owned(), "u.x".to_owned(), "u.n".to_owned()];
        let rest = format!("FROM ({}) q, unnest(q.xs) WITH ORDINALITY u(x, n)", self.arrays());
        (items, rest, vec![self.key.kind, self.value.kind, Type::Int8])
    }

    fn unnest_in_list(&self) -> Parts {
        let items = vec!["q.k".to_owned(), "unnest(q.xs)".to_owned(), "q.xs".to_owned()];
        let kinds = vec![self.key.kind, self.value.kind, self.array];
        (items, format!("FROM ({}) q", self.arrays()), kinds)
    }

    fn unnest_in_groups(&self, dice: &mut Draws) -> Parts {
        let (call, kind) = match self.value.kind {
            Type::Text => ("unnest(q.xs) COLLATE \"und-x-icu\"", Type::Icu),
            kind => ("unnest(q.xs)", kind),
        };
        let items = vec!["q.k".to_owned(), call.to_owned(), "count(*)".to_owned()];
        let limit = if dice.chance(50) { " ORDER BY 2 DESC, 1 LIMIT 3" } else { "" };
        let rest = format!("FROM ({}) q GROUP BY q.k, {call}{limit}", self.arrays());
        (items, rest, vec![self.key.kind, kind, Type::Int8])
    }

    fn array_subquery(&self, dice: &mut Draws, graph: &str) -> Parts {
        let (x, k) = (&self.value.reference, &self.key.reference);
        let condition = match self.key.kind {
            Type::Int4 => format!("{k} = g.b"),
            _ => format!("{k} IS NOT NULL AND g.a IS NOT NULL"),
        };
        let limit = if dice.chance(40) { " LIMIT 2" } else { "" };
        let Values { from, sort, .. } = self;
        let array_of = format!("ARRAY(SELECT {x} {from} WHERE {condition} ORDER BY {sort}{limit})");
        let items = vec!["g.a".to_owned(), array_of];
        (items, format!("FROM {graph} g"), vec![Type::Int4, self.array])
    }
}
