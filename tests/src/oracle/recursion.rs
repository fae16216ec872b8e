//! Random recursive queries. Each shape ends on any data: UNION over a finite domain, or a bound.

use super::draws::Draws;
use super::expression::{predicate, Field};
use super::feature::Feature;
use super::relation::{Query, Relation};
use super::types::Type;

use Type::{Int4, Int8};

/// The relation at 0 is the graph with columns a, b, w, l.
pub fn random_query(dice: &mut Draws, relations: &[Relation]) -> Query {
    use Feature::*;
    match dice.rule(&[
        (1, Closure),
        (2, Reachable),
        (1, BoundedWalks),
        (1, SimplePaths),
        (1, CyclePaths),
        (1, SearchOrder),
        (1, Numbers),
        (1, Distances),
        (1, GroupedClosure),
        (1, TwoRecursions),
        (1, RecursionOverRecursion),
        (1, RecursionInSubquery),
        (1, DistinctInStep),
        (1, MaxInStep),
        (1, GroupInStep),
        (3, BestPaths),
        (1, OtherTables),
    ]) {
        Closure => closure(dice),
        Reachable => reachable(dice, relations),
        BoundedWalks => bounded_walks(dice),
        SimplePaths => simple_paths(dice),
        CyclePaths => cycle_paths(dice),
        SearchOrder => search_order(dice),
        Numbers => numbers(dice),
        Distances => distances(dice),
        GroupedClosure => grouped_closure(dice),
        TwoRecursions => two_recursions(dice),
        RecursionOverRecursion => recursion_over_recursion(dice),
        RecursionInSubquery => in_subquery(dice),
        rule @ (DistinctInStep | MaxInStep | GroupInStep) => working_table(dice, rule),
        BestPaths => best_paths(dice),
        _ => with_other_tables(dice, relations),
    }
}

fn query(sql: String, kinds: &[Type]) -> Query {
    Query { sql, kinds: kinds.to_vec() }
}

/// A condition on the edge `e`, or nothing.
fn edge_filter(dice: &mut Draws) -> String {
    let fields = ["a", "b"].map(|c| Field { reference: format!("e.{c}"), kind: Int4 });
    if dice.chance(60) {
        return String::new();
    }
    format!(" AND {}", predicate(dice, &fields, 1))
}

/// The recursive CTE `name(a, b)` of all connected pairs; left, right or same-direction steps.
fn closure_cte(dice: &mut Draws, name: &str) -> String {
    let filter = edge_filter(dice);
    use Feature::{StepBoth, StepLeft, StepRight};
    let step = match dice.rule(&[StepRight, StepLeft, StepBoth].map(|rule| (1, rule))) {
        StepRight => format!("SELECT r.a, e.b FROM {name} r JOIN edge e ON r.b = e.a{filter}"),
        StepLeft => format!("SELECT e.a, r.b FROM edge e, {name} r WHERE e.b = r.a{filter}"),
        _ => format!(
            "SELECT e.b, f.b FROM {name} r, edge e, edge f \
             WHERE r.a = e.a AND r.b = f.a AND e.w = f.w{filter}"
        ),
    };
    format!("{name}(a, b) AS (SELECT a, b FROM edge UNION {step})")
}

fn closure(dice: &mut Draws) -> Query {
    let cte = closure_cte(dice, "reach");
    query(format!("WITH RECURSIVE {cte} SELECT a AS o1, b AS o2 FROM reach"), &[Int4, Int4])
}

/// Nodes reachable from seeds, which may be NULL.
fn reachable(dice: &mut Draws, relations: &[Relation]) -> Query {
    let seeds: Vec<(String, String)> = relations
        .iter()
        .flat_map(|r| r.columns.iter().map(move |c| (r.name.clone(), c)))
        .filter(|(_, (_, kind))| *kind == Int4)
        .map(|(table, (column, _))| (table, column.clone()))
        .collect();
    use Feature::{SeedOfConstant, SeedsOfTable, SeedsOfValues};
    let rules = [SeedsOfValues, SeedOfConstant, SeedsOfTable].map(|rule| (1, rule));
    let seed = match dice.rule(&rules) {
        SeedsOfValues => format!("VALUES ({}), ({})", Int4.literal(dice), Int4.literal(dice)),
        SeedOfConstant => format!("SELECT {}", Int4.present(dice)),
        _ => {
            let (table, column) = dice.pick(&seeds);
            format!("SELECT {column} FROM {table} WHERE {column} < {}", dice.range(-1, 4))
        }
    };
    let filter = edge_filter(dice);
    let sql = format!(
        "WITH RECURSIVE r(n) AS ({seed} UNION \
         SELECT e.b FROM r JOIN edge e ON e.a = r.n{filter}) SELECT n AS o1 FROM r"
    );
    query(sql, &[Int4])
}

/// Walks of bounded length as a multiset: UNION ALL with a depth.
fn bounded_walks(dice: &mut Draws) -> Query {
    let bound = dice.range(1, 2);
    let filter = edge_filter(dice);
    let sql = format!(
        "WITH RECURSIVE r(n, d) AS (SELECT a, 0 FROM edge UNION ALL \
         SELECT e.b, r.d + 1 FROM r JOIN edge e ON e.a = r.n{filter} WHERE r.d < {bound}) \
         SELECT n AS o1, d AS o2 FROM r"
    );
    query(sql, &[Int4, Int4])
}

/// Paths without repeated nodes, tracked in an array.
fn simple_paths(dice: &mut Draws) -> Query {
    let bound = dice.range(2, 3);
    let sql = format!(
        "WITH RECURSIVE r(n, path) AS (SELECT a, ARRAY[a] FROM edge WHERE a < 4 UNION \
         SELECT e.b, r.path || e.b FROM r JOIN edge e ON e.a = r.n \
         WHERE NOT e.b = ANY (r.path) AND r.path IS DISTINCT FROM NULL \
         AND r.n <> e.b AND e.b < 6 AND e.w > {bound}) \
         SELECT n AS o1, path AS o2 FROM r"
    );
    query(sql, &[Int4, Type::Int4Array])
}

/// Paths until a node comes again, as CYCLE tracks them.
fn cycle_paths(dice: &mut Draws) -> Query {
    let union = dice.pick(&["UNION", "UNION ALL"]).to_string();
    let sql = format!(
        "WITH RECURSIVE r(n) AS (SELECT DISTINCT a FROM edge WHERE a < 3 {union} \
         SELECT e.b FROM r JOIN edge e ON e.a = r.n WHERE e.b < 3) \
         CYCLE n SET is_cycle USING path SELECT n AS o1, is_cycle AS o2, cardinality(path) AS o3 FROM r"
    );
    query(sql, &[Int4, Type::Bool, Int4])
}

/// Bounded walks in the order in which SEARCH numbers them.
fn search_order(dice: &mut Draws) -> Query {
    let order = dice.pick(&["DEPTH", "BREADTH"]).to_string();
    let sql = format!(
        "WITH RECURSIVE r(n, d) AS (SELECT a, 0 FROM edge WHERE a < 4 UNION \
         SELECT e.b, r.d + 1 FROM r JOIN edge e ON e.a = r.n WHERE r.d < 2) \
         SEARCH {order} FIRST BY n SET place \
         SELECT n AS o1, d AS o2, rank() OVER (ORDER BY place) AS o3 FROM r"
    );
    query(sql, &[Int4, Int4, Int8])
}

/// Counting up to a bound that comes from the data.
fn numbers(dice: &mut Draws) -> Query {
    let union = dice.pick(&["UNION", "UNION ALL"]).to_string();
    let sql = format!(
        "WITH RECURSIVE r(n, top) AS (SELECT {}, b FROM edge {union} \
         SELECT n + 1, top FROM r WHERE n < top) SELECT n AS o1, count(*) AS o2 FROM r GROUP BY n",
        dice.range(0, 3)
    );
    query(sql, &[Int4, Int8])
}

/// Shortest distances: bounded depth, then a minimum over the recursion.
fn distances(dice: &mut Draws) -> Query {
    let bound = dice.range(2, 6);
    let sql = format!(
        "WITH RECURSIVE r(s, n, d) AS (SELECT a, a, 0 FROM edge WHERE a < 3 UNION \
         SELECT r.s, e.b, r.d + 1 FROM r JOIN edge e ON e.a = r.n WHERE r.d < {bound}) \
         SELECT s AS o1, n AS o2, min(d) AS o3 FROM r GROUP BY s, n"
    );
    query(sql, &[Int4, Int4, Int4])
}

/// The least or greatest value of a recursion whose step is monotone in it, or its first row by that value: only that
/// one is kept in the loop. PostgreSQL needs an end: edges that ascend, or a count of steps.
fn best_paths(dice: &mut Draws) -> Query {
    let least = dice.chance(60);
    let (func, closed) = if least { ("min", "<") } else { ("max", ">") };
    // Weights out of range are unknown: the sum of a path that is not the best must not overflow.
    let weight = "CASE WHEN e.w BETWEEN 0 AND 9 THEN CAST(e.w AS integer) END";
    let value = match dice.index(6) {
        0 => "r.v".to_string(),
        1 => "r.v + 1".to_string(),
        2 => format!("r.v - ({weight})"),
        3 => format!("{}(r.v, {weight})", dice.pick(&["greatest", "least"])),
        _ => format!("r.v + ({weight})"),
    };
    let kind = *dice.pick(&[Int4, Int8, Type::Numeric]);
    let name = kind.name();
    let value = match kind {
        Type::Numeric if dice.chance(30) => format!("CAST({value} AS numeric) + 1.50"),
        _ => format!("CAST({value} AS {name})"),
    };
    let (count, more, end) = match dice.chance(50) {
        true => (", 0", ", r.c + 1", "r.c < 3"),
        false => (", 0", ", 0", "e.a < e.b"),
    };
    let bound = match dice.chance(30) {
        true => format!(" AND r.v {closed} {}", dice.range(-2, 9)),
        false => String::new(),
    };
    // What decides among equal values: the node before, and one that goes along with the path, or does not.
    let carried = dice.pick(&["r.q", "e.b - e.a"]).to_string();
    let sql = format!(
        "WITH RECURSIVE r(s, n, v, c, p, q) AS (\
         SELECT a, b, CAST({} AS {name}){count}, CAST(NULL AS integer), a FROM edge \
         WHERE a < {} UNION \
         SELECT r.s, e.b, {value}{more}, r.n, {carried} FROM r JOIN edge e ON e.a = r.n AND {end}{bound}) ",
        dice.range(0, 3),
        dice.range(1, 3),
    );
    if dice.chance(50) {
        return first_of_paths(dice, sql, least, kind);
    }
    let (body, kinds) = match dice.index(4) {
        0 => ("SELECT n AS o1, FUNC(v) AS o2 FROM r GROUP BY n", vec![Int4, kind]),
        1 => ("SELECT FUNC(v) AS o1 FROM r WHERE s < n", vec![kind]),
        2 => (
            "SELECT e.l AS o1, FUNC(r.v) AS o2, max(r.n) AS o3 FROM r JOIN edge e ON e.a = r.n \
             GROUP BY e.l",
            vec![Type::Text, kind, Int4],
        ),
        _ => (
            "SELECT s AS o1, n AS o2, FUNC(v) AS o3 FROM r GROUP BY s, n HAVING FUNC(v) <> 4",
            vec![Int4, Int4, kind],
        ),
    };
    query(sql + &body.replace("FUNC", func), &kinds)
}

/// The first rows of best paths.
fn first_of_paths(dice: &mut Draws, recursion: String, least: bool, kind: Type) -> Query {
    let direction = match (least, dice.chance(30)) {
        (true, false) => "",
        (true, true) => " NULLS FIRST",
        (false, false) => " DESC NULLS LAST",
        (false, true) => " DESC",
    };
    let mut sort = |column: &str| {
        let direction = dice.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        format!("{column}{direction}")
    };
    let (p, q) = (sort("p"), sort("q"));
    let (body, kinds) = match dice.index(5) {
        0 => (
            format!(
                "SELECT DISTINCT ON (s, n) s AS o1, n AS o2, v AS o3, p AS o4 FROM r \
                 ORDER BY s, n, v{direction}, {p}"
            ),
            vec![Int4, Int4, kind, Int4],
        ),
        1 => (
            format!(
                "SELECT DISTINCT ON (s, n) n AS o1, v AS o2, q AS o3, p AS o4 FROM r \
                 ORDER BY s, n, v{direction}, {q}, {p}"
            ),
            vec![Int4, kind, Int4, Int4],
        ),
        2 => (
            format!(
                "SELECT DISTINCT ON (n) n AS o1, v AS o2, s AS o3, p AS o4 FROM r \
                 ORDER BY n, v{direction}, s, {p}"
            ),
            vec![Int4, kind, Int4, Int4],
        ),
        3 => (
            format!(
                "SELECT o1, o2, o3 FROM (SELECT n AS o1, v AS o2, p AS o3, row_number() OVER \
                 (PARTITION BY s, n ORDER BY v{direction}, {p}) AS place FROM r) x WHERE place = 1"
            ),
            vec![Int4, kind, Int4],
        ),
        // From the ends of the best paths back to where they begin.
        _ => (
            format!(
                ", t AS (SELECT DISTINCT ON (s, n) s, n, p FROM r ORDER BY s, n, v{direction}, {p}), \
                 b(s, n, at, d) AS (SELECT s, n, p, 0 FROM t UNION ALL SELECT b.s, b.n, t.p, b.d + 1 \
                 FROM b JOIN t ON t.s = b.s AND t.n = b.at AND b.d < 4) \
                 SELECT s AS o1, n AS o2, count(at) AS o3 FROM b GROUP BY s, n"
            ),
            vec![Int4, Int4, Int8],
        ),
    };
    query(recursion + &body, &kinds)
}

/// A CTE over a recursive CTE.
fn grouped_closure(dice: &mut Draws) -> Query {
    let cte = closure_cte(dice, "reach");
    let sql = format!(
        "WITH RECURSIVE {cte}, sizes AS (SELECT a, count(*) AS n, sum(b) AS s FROM reach GROUP BY a) \
         SELECT a AS o1, n AS o2, s AS o3 FROM sizes WHERE n > {}",
        dice.range(0, 3)
    );
    query(sql, &[Int4, Int8, Int8])
}

fn two_recursions(dice: &mut Draws) -> Query {
    let one = closure_cte(dice, "r1");
    let two = closure_cte(dice, "r2");
    let body = match dice.index(3) {
        0 => "SELECT r1.a AS o1, r2.b AS o2 FROM r1 JOIN r2 ON r1.b = r2.a AND r1.a = r2.b",
        1 => "SELECT a AS o1, b AS o2 FROM r1 UNION ALL SELECT b, a FROM r2",
        _ => "SELECT DISTINCT x.a AS o1, y.a AS o2 FROM r1 x, r2 y WHERE x.b = y.b AND x.a <> y.a",
    };
    query(format!("WITH RECURSIVE {one}, {two} {body}"), &[Int4, Int4])
}

/// The second recursion starts from and steps through the first.
fn recursion_over_recursion(dice: &mut Draws) -> Query {
    let one = closure_cte(dice, "r1");
    let sql = format!(
        "WITH RECURSIVE {one}, r2(a, b) AS (SELECT a, b FROM r1 WHERE a <= {} UNION \
         SELECT r2.b, r1.a FROM r2 JOIN r1 ON r2.a = r1.b AND r1.a <> r2.b) \
         SELECT a AS o1, b AS o2 FROM r2",
        dice.range(0, 4)
    );
    query(sql, &[Int4, Int4])
}

fn in_subquery(dice: &mut Draws) -> Query {
    let cte = closure_cte(dice, "reach");
    let sql = format!(
        "SELECT e.a AS o1, c.n AS o2 FROM edge e JOIN \
         (WITH RECURSIVE {cte} SELECT a, count(*) AS n FROM reach GROUP BY a) c ON c.a = e.b"
    );
    query(sql, &[Int4, Int8])
}

/// Shapes whose recursive term is not linear in the working table.
fn working_table(dice: &mut Draws, rule: Feature) -> Query {
    let union = dice.pick(&["UNION", "UNION ALL"]).to_string();
    let bound = dice.range(3, 7);
    let step = match rule {
        Feature::DistinctInStep => format!(
            "SELECT e.b, q.d + 1 FROM (SELECT DISTINCT n, d FROM r) q JOIN edge e \
                      ON e.a = q.n WHERE q.d < {bound}"
        ),
        Feature::MaxInStep => format!(
            "SELECT q.top + 1, q.d + 1 FROM (SELECT max(i.n) AS top, i.d \
                      FROM (SELECT n, d FROM r) i GROUP BY i.d) q WHERE q.d < {bound}"
        ),
        _ => format!(
            "SELECT q.n, q.d + 1 FROM (SELECT i.n, max(i.d) AS d, count(*) AS c \
                      FROM (SELECT n, d FROM r) i GROUP BY i.n) q WHERE q.d < {bound} AND q.c > 1"
        ),
    };
    let sql = format!(
        "WITH RECURSIVE r(n, d) AS (SELECT b, 0 FROM edge {union} {step}) \
         SELECT n AS o1, d AS o2 FROM r"
    );
    query(sql, &[Int4, Int4])
}

/// Other base tables in both terms.
fn with_other_tables(dice: &mut Draws, relations: &[Relation]) -> Query {
    let numbers = |relation: &&Relation| relation.columns.iter().any(|(_, kind)| *kind == Int4);
    let fitting: Vec<Relation> = relations.iter().filter(numbers).cloned().collect();
    let other = Relation::random(dice, &fitting);
    let column = other.columns.iter().find(|(_, kind)| *kind == Int4);
    let (column, _) = column.expect("those without were left out");
    let name = &other.name;
    let sql = format!(
        "WITH RECURSIVE r(n) AS (SELECT e.b FROM edge e JOIN {name} x ON x.{column} = e.a UNION \
         SELECT e.b FROM r, edge e, {name} x WHERE e.a = r.n AND x.{column} = e.b) \
         SELECT r.n AS o1, e.l AS o2 FROM r JOIN edge e ON e.a = r.n"
    );
    query(sql, &[Int4, Type::Text])
}
