// SPDX-License-Identifier: Apache-2.0
//! What `DataFusion`'s own sqllogictest files have found (`test/datafusion/sqllogictest`), over rows of a few lines.

mod common;

use common::{Rows, Setting, answer, nodes, sessions};

/// The statements that make a table, the query, and the nodes that it has.
struct Case {
    tables: &'static [&'static str],
    query: &'static str,
    nodes: usize,
}

const CASES: &[Case] = &[
    // The row of a placeholder has columns of nulls, of another type than its schema says.
    Case {
        tables: &["create table nothing as select x from a limit 0"],
        query: "select distinct count(*) from nothing",
        nodes: 0,
    },
    // Averages of narrow decimals come from states with a sum of 128 bits, and those of wide ones have 256 bits.
    Case {
        tables: &["create table n as select arrow_cast(x, 'Decimal64(14, 0)') as d from a"],
        query: "select avg(d), arrow_typeof(avg(d)) from n",
        nodes: 0,
    },
    Case {
        tables: &[
            "create table w as select arrow_cast('9999999999999999999999999999999999', 'Decimal128(34, 0)') as d \
                   from generate_series(1, 21476)",
        ],
        query: "select avg(d) from w",
        nodes: 0,
    },
    // Partitions of a union are put together one by one where all its inputs are divided by the same keys.
    Case {
        tables: &[],
        query: "select 0 as m, x from a group by 1, 2 union all select 1 as m, y from b group by 1, 2 order by 1, 2",
        nodes: 3,
    },
    Case {
        tables: &[],
        query: "select x, sum(n) from (select x, count(*) as n from a group by x \
                union all select y, sum(k) from b group by y) group by x",
        nodes: 2,
    },
];

#[tokio::test]
async fn answers_are_those_of_datafusion() {
    for Case { tables, query, nodes: least } in CASES {
        let (stock, quern) = sessions(Setting::default(), Rows { a: 100, b: 20, c: 10 }).await;
        for context in [&stock, &quern] {
            for table in *tables {
                let made = context.sql(table).await.unwrap_or_else(|error| panic!("{table}: {error}"));
                made.collect().await.unwrap_or_else(|error| panic!("{table}: {error}"));
            }
        }
        let expected = answer(&stock, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let given = answer(&quern, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(given, expected, "{query}");
        let replaced = nodes(&quern, query).await;
        assert!(replaced >= *least, "{query}: {replaced} nodes");
    }
}
