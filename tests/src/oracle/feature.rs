//! The list of everything that a run of the oracle is to exercise at least once.
//!
//! Rules of the grammar are recorded by [`Draws`](super::draws::Draws) where they are drawn, nodes of plans by
//! [`plan_nodes`](super::plan_nodes). The list is the only place that names them, so a rule that is in it but is
//! never drawn any more is found missing by [`Coverage`](super::coverage::Coverage).

macro_rules! features {
    ($($group:ident $title:literal { $($feature:ident $name:literal $($rare:ident)?,)* })*) => {
        /// Kinds of features, as the table shows them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Group {
            $($group,)*
        }

        impl Group {
            pub const ALL: &[Group] = &[$(Group::$group,)*];

            pub fn title(self) -> &'static str {
                match self {
                    $(Group::$group => $title,)*
                }
            }
        }

        /// A rule of the grammar or a node of plans.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Feature {
            $($($feature,)*)*
        }

        impl Feature {
            pub const ALL: &[Feature] = &[$($(Feature::$feature,)*)*];

            pub fn group(self) -> Group {
                match self {
                    $($(Feature::$feature => Group::$group,)*)*
                }
            }

            pub fn name(self) -> &'static str {
                match self {
                    $($(Feature::$feature => $name,)*)*
                }
            }

            /// Whether a short run may miss it by chance.
            pub fn is_rare(self) -> bool {
                match self {
                    $($(Feature::$feature => {
                        let marks: &[&str] = &[$(stringify!($rare))?];
                        !marks.is_empty()
                    })*)*
                }
            }
        }
    };
}

features! {
    Queries "queries" {
        Select "select",
        Grouped "grouped",
        Distinct "DISTINCT",
        SetOperation "set operation",
        SubqueryInFrom "subquery in FROM" rare,
        Cte "CTE",
        ValuesList "VALUES" rare,
        SubqueryInValues "subquery in VALUES" rare,
        ErrorsOfRows "errors of rows" rare,
    }
    FromItems "FROM" {
        PlainTable "table",
        KeyedTable "table with key",
        PartitionedTable "partitioned table",
        EarlierView "earlier view",
        PlainView "plain view" rare,
        InheritanceParent "inheritance parent" rare,
        GeneratedColumn "generated column" rare,
    }
    Joins "joins" {
        InnerJoin "JOIN",
        LeftJoin "LEFT",
        RightJoin "RIGHT",
        FullJoin "FULL",
        CrossJoin "CROSS",
        SelfJoin "of a table with itself",
        JoinUsing "USING" rare,
        JoinNatural "NATURAL" rare,
        JoinOnEqual "on =",
        JoinOnLess "on <",
        JoinOnUnequal "on <>",
        JoinOnRange "on a range" rare,
        JoinOfSeveral "of several by equality",
        JoinOnNotDistinct "on IS NOT DISTINCT FROM",
        JoinOnNull "on IS NULL" rare,
        JoinOnOr "on OR" rare,
    }
    Expressions "expressions" {
        Constant "constant",
        ColumnReference "column",
        Coalesce "coalesce",
        Nullif "nullif",
        Greatest "greatest",
        Least "least",
        Case "CASE",
        AddColumns "+",
        AddConstant "+ or - constant",
        Multiply "*",
        Remainder "%",
        Negate "-",
        LengthOfSubstr "length of substr",
        BooleanToInteger "boolean to integer",
        IntegerToNumber "integer to number",
        IntegerToText "integer to text",
        Concatenate "||",
        Substr "substr",
        Lower "lower",
        Upper "upper",
        TextToCharacters "text to varchar or char",
        DateAndDays "date + integer",
        DateToTimestamp "date to timestamp",
        AppendToArray "array || element",
        AddInterval "timestamp + interval" rare,
        JsonField "jsonb -> key" rare,
        JsonText "jsonb ->> key" rare,
        RangeFromBounds "range * range" rare,
        RegexpReplace "regexp_replace" rare,
        AddToTimestamptz "timestamptz + interval" rare,
        TruncateTimestamptz "date_trunc of timestamptz" rare,
        TimestampToTimestamptz "timestamp to timestamptz" rare,
        TimestamptzToDate "timestamptz to date" rare,
        TimestamptzToTimestamp "timestamptz to timestamp" rare,
        TimestamptzToTime "timestamptz to time" rare,
        HourOfTimestamptz "hour of timestamptz" rare,
        TimeToText "dates, times and intervals to text" rare,
        EnumToText "enum to text" rare,
        ToChar "to_char" rare,
        ConcatValues "concat" rare,
        JsonOfValues "jsonb_build_array" rare,
        TextToTime "text to date or time" rare,
    }
    Predicates "predicates" {
        And "AND",
        Or "OR",
        Not "NOT",
        IsNull "IS [NOT] NULL",
        IsDistinct "IS [NOT] DISTINCT FROM",
        InList "[NOT] IN list",
        Like "LIKE",
        EqualAnyOfArray "= ANY array",
        Between "BETWEEN",
        JsonContains "jsonb @> jsonb" rare,
        RangeContains "range @> element" rare,
        Matches "~" rare,
        LikeCollated "LIKE under a collation" rare,
        PresentTime "present time" rare,
        CompareZoned "timestamptz and timestamp or date" rare,
        Compare "comparison",
    }
    Grouping "GROUP BY" {
        GroupOfAll "all rows" rare,
        PlainKeys "keys",
        Rollup "ROLLUP" rare,
        Cube "CUBE" rare,
        GroupingSets "GROUPING SETS" rare,
        NestedGroupingSets "sets within GROUPING SETS" rare,
        GroupingCall "GROUPING()" rare,
        Having "HAVING",
    }
    Aggregates "aggregates" {
        CountRows "count(*)",
        Count "count",
        Sum "sum",
        Avg "avg",
        Min "min",
        Max "max",
        BoolAnd "bool_and",
        BoolOr "bool_or",
        BitAnd "bit_and" rare,
        BitOr "bit_or" rare,
        BitXor "bit_xor" rare,
        VarPop "var_pop" rare,
        Variance "variance" rare,
        StddevPop "stddev_pop" rare,
        Stddev "stddev" rare,
        ArrayAgg "array_agg" rare,
        StringAgg "string_agg" rare,
        PercentileDisc "percentile_disc" rare,
        PercentileCont "percentile_cont" rare,
        HypotheticalRank "rank WITHIN GROUP" rare,
        RegrCount "regr_count" rare,
        RegrAvgx "regr_avgx" rare,
        JsonbAgg "jsonb_agg" rare,
        OwnAggregate "users' own" rare,
        Mode "mode" rare,
        OuterAggregate "of the outer query" rare,
        AggregateDistinct "DISTINCT",
        AggregateFilter "FILTER",
    }
    SetOperations "set operations" {
        Union "UNION" rare,
        UnionAll "UNION ALL" rare,
        Intersect "INTERSECT" rare,
        IntersectAll "INTERSECT ALL" rare,
        Except "EXCEPT" rare,
        ExceptAll "EXCEPT ALL" rare,
    }
    Subqueries "subqueries" {
        InWhere "in WHERE",
        InSelectList "in the select list",
        InAggregate "in an aggregate" rare,
        BesideAggregate "beside an aggregate" rare,
        InHaving "in HAVING" rare,
        InJoinCondition "in a join's condition",
        LateralCross "CROSS JOIN LATERAL" rare,
        LateralLeft "LEFT JOIN LATERAL",
        LateralAggregate "LATERAL aggregate" rare,
        LateralGroup "LATERAL GROUP BY" rare,
        LateralRows "LATERAL rows" rare,
        LateralDistinct "LATERAL DISTINCT" rare,
        Correlated "correlated",
        SubqueryWithJoin "with a join",
        SubqueryOverOuter "predicate on outer columns",
        Nested "nested",
        Exists "EXISTS" rare,
        NotExists "NOT EXISTS" rare,
        In "IN",
        NotIn "NOT IN" rare,
        RowIn "row IN" rare,
        RowNotIn "row NOT IN" rare,
        RowOrder "row < ANY" rare,
        OtherType "of another type" rare,
        Any "ANY" rare,
        All "ALL" rare,
        Scalar "value",
        ScalarWithHaving "value with HAVING" rare,
        SeveralRows "value of several rows" rare,
        SubqueryOr "OR predicate" rare,
        SubqueryNot "NOT subquery",
        SubqueryIsNull "subquery IS NULL" rare,
        ArraySubquery "ARRAY" rare,
    }
    Limits "LIMIT" {
        LimitOfView "of the view" rare,
        LimitInFrom "of a subquery in FROM" rare,
        LimitLateral "of a LATERAL subquery" rare,
        LimitOfValue "of a value" rare,
        Limit "LIMIT" rare,
        Offset "OFFSET" rare,
        OffsetAlone "OFFSET alone" rare,
        WithTies "WITH TIES" rare,
        LimitComputed "computed number" rare,
        DistinctOn "DISTINCT ON" rare,
        DistinctOnLimit "DISTINCT ON with LIMIT" rare,
        RankBound "bound of a rank" rare,
    }
    RowOrders "order of a subquery" {
        OrderToAggregate "to an aggregate" rare,
        OrderToGroups "to groups" rare,
        OrderAmongPeers "among peers of an aggregate" rare,
        OrderToLimit "to LIMIT" rare,
        OrderToDistinctOn "to DISTINCT ON" rare,
        OrderToWindow "to windows" rare,
        OrderToArray "to ARRAY" rare,
        OrderThroughFilter "through WHERE" rare,
        OrderThroughCte "through WITH" rare,
        OrderBehindLimit "behind LIMIT" rare,
    }
    Windows "windows" {
        RowNumber "row_number" rare,
        Rank "rank" rare,
        DenseRank "dense_rank" rare,
        PercentRank "percent_rank" rare,
        CumeDist "cume_dist" rare,
        Ntile "ntile" rare,
        Lag "lag" rare,
        Lead "lead" rare,
        FirstValue "first_value" rare,
        LastValue "last_value" rare,
        NthValue "nth_value" rare,
        WindowAggregate "aggregate",
        WindowArray "array_agg" rare,
        WindowOverGroups "over groups" rare,
        WindowDistinct "DISTINCT" rare,
        WindowPartition "PARTITION BY",
        WindowOfAll "one partition",
    }
    Frames "frames" {
        DefaultFrame "default" rare,
        Rows "ROWS" rare,
        Groups "GROUPS" rare,
        Range "RANGE" rare,
        RangeOffset "RANGE with order for offsets" rare,
        RangeOfTimes "RANGE of times" rare,
        RangeOfMonths "RANGE of months" rare,
        FromUnbounded "from UNBOUNDED" rare,
        FromOffset "from n PRECEDING" rare,
        FromCurrent "from CURRENT ROW",
        ToUnbounded "to UNBOUNDED",
        ToOffset "to n FOLLOWING" rare,
        ToCurrent "to CURRENT ROW",
        ExcludeCurrent "EXCLUDE CURRENT ROW" rare,
        ExcludeGroup "EXCLUDE GROUP" rare,
        ExcludeTies "EXCLUDE TIES" rare,
    }
    SetReturning "set-returning functions" {
        GenerateSeries "generate_series" rare,
        UnnestInFrom "unnest WITH ORDINALITY" rare,
        UnnestInList "unnest in the select list" rare,
        UnnestInGroups "unnest in GROUP BY" rare,
        RowsFrom "ROWS FROM" rare,
        Subscripts "generate_subscripts" rare,
        Words "string_to_table" rare,
        RegexpWords "regexp_split_to_table" rare,
        JsonElements "jsonb_array_elements" rare,
        JsonEach "jsonb_each" rare,
    }
    Recursions "recursions" {
        Closure "closure" rare,
        StepRight "right step" rare,
        StepLeft "left step" rare,
        StepBoth "step at both ends" rare,
        Reachable "reachable from seeds" rare,
        SeedsOfValues "seeds in VALUES" rare,
        SeedOfConstant "constant seed" rare,
        SeedsOfTable "seeds in a table" rare,
        BoundedWalks "bounded walks" rare,
        SimplePaths "paths in arrays" rare,
        CyclePaths "CYCLE" rare,
        SearchOrder "SEARCH" rare,
        Numbers "counting" rare,
        Distances "distances" rare,
        GroupedClosure "grouped closure" rare,
        TwoRecursions "two" rare,
        RecursionOverRecursion "one over another" rare,
        RecursionInSubquery "in a subquery" rare,
        DistinctInStep "DISTINCT in the step" rare,
        MaxInStep "max in the step" rare,
        GroupInStep "GROUP BY in the step" rare,
        BestPaths "best paths",
        OtherTables "other tables" rare,
    }
    Nodes "plan nodes" {
        ConstantNode "Constant",
        SourceNode "Source",
        GetNode "Get",
        LetNode "Let",
        MfpNode "Mfp",
        TableFunctionNode "Table function" rare,
        TemporalNode "Temporal" rare,
        JoinNode "Join",
        CrossJoinNode "Cross join",
        RangeJoinNode "Range join" rare,
        DeltaJoinNode "Delta join" rare,
        DistinctNode "Distinct",
        UnionNode "Union",
        NegateNode "Negate",
        RepeatNode "Repeat",
    }
    Reduces "Reduce" {
        ReduceAll "by ()",
        ReduceByKey "by key",
        ReduceSums "sums",
        ReduceExtremes "min and max",
        ReduceCollections "values in an order",
        ReduceAny "any",
    }
    Partitions "Partition" {
        PartitionOfAll "by ()",
        PartitionByKey "by key",
        PartitionLimit "limit",
        PartitionOffset "offset",
        PartitionTies "with ties" rare,
        PartitionWindow "window functions",
        PartitionPeers "order among peers" rare,
        PartitionRows "rows frame",
        PartitionGroups "groups frame" rare,
        PartitionRange "range frame",
    }
    Loops "LetRec" {
        FixpointDistinct "UNION as fixpoint",
        FixpointAll "UNION ALL as fixpoint" rare,
        WorkingTableDistinct "UNION by working table" rare,
        WorkingTableAll "UNION ALL by working table" rare,
        FixpointLeast "fixpoint of the least",
        FixpointGreatest "fixpoint of the greatest" rare,
        FixpointThen "fixpoint of the first by several columns" rare,
    }
    Changes "changes" {
        Insert "INSERT",
        InsertOnConflict "INSERT ON CONFLICT",
        InsertCopies "INSERT of copies",
        InsertChild "INSERT into a child" rare,
        DeleteByKey "DELETE by key",
        DeleteByPredicate "DELETE by predicate",
        Update "UPDATE",
        UpdateKey "UPDATE of a key",
    }
    Commands "commands" {
        CreateView "CREATE VIEW",
        CreateWithNoData "WITH NO DATA" rare,
        DropView "DROP VIEW",
        ReplaceView "CREATE OR REPLACE VIEW",
        Truncate "TRUNCATE",
        Autocommit "autocommit",
        Commit "COMMIT",
        Rollback "ROLLBACK",
        Savepoint "SAVEPOINT",
        RollbackTo "ROLLBACK TO",
        Release "RELEASE",
        Interleaved "interleaved",
        ReadInside "reads inside",
        RepeatableRead "REPEATABLE READ",
        Serializable "SERIALIZABLE",
    }
    Values "values" {
        Null "NULL",
        Nan "NaN",
        Infinity "Infinity",
        NegativeInfinity "-Infinity",
        NegativeZero "-0",
        NumericNan "numeric NaN",
        TrailingZero "trailing zero",
        EmptyText "empty text",
        MultibyteText "multi-byte text",
        LongText "text out of line",
        EmptyChar "empty char",
        EmptyBytes "empty bytes",
        TimeZone "time zone",
        InfiniteTime "infinite time" rare,
        EmptyArray "empty array",
        ArrayOfSeveral "array of several dimensions",
        NullInArray "NULL in an array",
    }
}
