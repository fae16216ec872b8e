//! Aggregates of SQL/JSON as the functions behind them (PostgreSQL 16 and newer).
//!
//! ```sql
//! SELECT JSON_ARRAYAGG(t.a RETURNING text) FROM t
//! SELECT json_agg_strict(t.a)::text FROM t
//! ```

use crate::pg::versions;
use crate::rewrite::tree::Tree;

impl Tree {
    /// A copy in which SQL/JSON has no aggregates of its own.
    pub fn with_plain_json_aggregates(self) -> Tree {
        // SAFETY: a complete query; what is made of it is a copy.
        unsafe { Tree::from_node(versions::json::plain_aggregates(self.as_node())) }
    }
}
