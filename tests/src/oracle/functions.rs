//! Random queries with set-returning functions in FROM, which read the row before them.

use super::draws::Draws;
use super::feature::Feature;
use super::from::lateral_join;
use super::relation::{named, Query, Relation};
use super::types::Type::{self, Int4, Int8, Jsonb, Text};

pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    use Feature::*;
    let rules = [(3, GenerateSeries), (2, RowsFrom), (1, Subscripts), (1, Words), (1, RegexpWords)];
    let rules = [&rules[..], &[(1, JsonElements), (1, JsonEach)]].concat();
    let (call, columns): (String, &[(&str, Type)]) = match dice.rule(&rules) {
        GenerateSeries => {
            let step = dice.pick(&["1", "2", "-1"]);
            (format!("generate_series(g.a, g.b, {step}) s(n)"), &[("n", Int4)])
        }
        RowsFrom => {
            let functions = "generate_series(g.a, g.b), unnest(ARRAY[g.l, 'x', NULL])";
            let call = format!("ROWS FROM ({functions}) WITH ORDINALITY s(n, x, i)");
            (call, &[("n", Int4), ("x", Text), ("i", Int8)])
        }
        Subscripts => {
            ("generate_subscripts(ARRAY[g.a, g.b, 1], 1) s(n)".to_owned(), &[("n", Int4)])
        }
        Words => ("string_to_table(g.l, ' ') s(x)".to_owned(), &[("x", Text)]),
        RegexpWords => ("regexp_split_to_table(g.l, '[a ]') s(x)".to_owned(), &[("x", Text)]),
        JsonElements => {
            let array = "CASE WHEN g.a > 0 THEN '[1, \"a\", null, {}]'::jsonb END";
            (format!("jsonb_array_elements({array}) s(v)"), &[("v", Jsonb)])
        }
        _ => {
            let object = "CASE WHEN g.a > 2 THEN '{\"a\": 1, \"b\": null}'::jsonb END";
            (format!("jsonb_each({object}) s(x, v)"), &[("x", Text), ("v", Jsonb)])
        }
    };
    let join = lateral_join(dice);
    let on = if join.starts_with("LEFT") { " ON true" } else { "" };
    let own = columns.iter().map(|(name, _)| format!("s.{name}"));
    let items: Vec<String> = ["g.a".to_owned()].into_iter().chain(own).collect();
    let kinds = [Int4].into_iter().chain(columns.iter().map(|(_, kind)| *kind)).collect();
    let graph = &relations[0].name;
    let sql = format!("SELECT {} FROM {graph} g {join} {call}{on}", named(&items));
    Query { sql, kinds }
}
