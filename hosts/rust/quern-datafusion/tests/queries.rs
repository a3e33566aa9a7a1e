// SPDX-License-Identifier: Apache-2.0
//! Queries with and without Quern over the same rows: all answers are equal, and no fragment falls back.

mod common;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use common::{Rows, Setting, answer, count_nodes, nodes, sessions, texts};
use datafusion::common::cast::as_int64_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, AccumulatorFactoryFunction, Volatility, create_udaf};
use datafusion::physical_plan::collect;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, DefaultPhysicalProtoConverter, PhysicalExtensionCodec,
};
use quern_datafusion::QuernCodec;

/// Queries, and the least number of nodes that are replaced in each.
const QUERIES: &[(&str, usize)] = &[
    // Joins of all kinds, whose rows go to the parent.
    ("select a.k, a.x, b.s from a join b on a.k = b.k", 1),
    ("select a.k, a.x, b.s from a left join b on a.k = b.k", 1),
    ("select a.k, a.x, b.s from a right join b on a.k = b.k", 1),
    ("select a.k, a.x, b.k, b.s from a full join b on a.k = b.k", 1),
    ("select * from a where a.k in (select k from b)", 1),
    ("select * from a where not exists (select 1 from b where b.k = a.k)", 1),
    ("select * from a where exists (select 1 from b where b.k = a.k and b.y < a.x)", 1),
    ("select a.x, b.y from a left join b on a.k = b.k and a.x < b.y", 1),
    ("select a.x, b.y from a join b on a.k = b.k and a.x + b.y > 60", 1),
    ("select a.x, b.y from a join b on a.k = b.k and a.x > b.y + 5 and a.x - 20 < b.y", 1),
    ("select b.s, a.m from a join b on a.k = b.k and (a.x < b.y or a.s > b.s) and a.x <> b.y", 1),
    ("select b.s, a.x from a join b on a.k = b.k and a.s || 'x' = b.s || 'x' where a.x > 3", 1),
    ("select a.x, c.d from a join b on a.k = b.k and (a.x < b.y or b.s = 'w1') join c on c.y = b.y and c.d < a.m", 1),
    ("select a.x, b.y from a left join b on a.k = b.k and a.k + 1 < b.y and a.x * 2 >= b.y", 1),
    ("select * from a where exists (select 1 from b where b.k = a.k and b.y + 3 < a.x * a.i16)", 1),
    ("select count(*) from (select a.x from a join b on a.k = b.k and a.s <> b.s and a.x < b.y limit 40) t", 1),
    ("select a.x, b.y from a join b on a.k = b.k and a.s = b.s", 1),
    ("select a.x, b.y from a join b on a.k is not distinct from b.k", 1),
    ("select a.x, c.d from a join b on a.k = b.k join c on b.y = c.y where c.d > 0 and a.s like 'w%'", 1),
    // NOT IN, with nulls on both sides, on one, and on none; IN beside another condition.
    ("select * from a where x not in (select y from b)", 1),
    ("select * from a where x not in (select y from b where y is not null)", 1),
    ("select * from a where x is not null and x not in (select y from b where y between 3 and 20)", 1),
    ("select * from a where x not in (select y from b where y > 1000)", 1),
    ("select s, count(*) from a where s not in (select s from b where s <> 'w1') group by s", 1),
    ("select x from a where k not in (select k from b where k > 5) and x not in (select y from c where y > 3)", 1),
    ("select k, x from a where x in (select y from b) or k in (select k from b where y < 20)", 1),
    ("select k, x from a where x in (select y from b where y > 20) or s = 'w1'", 1),
    ("select k, count(*) from a where not (x in (select y from b where y > 20) or k < 40) group by k", 1),
    ("select k, x from a where k < 9 or exists (select 1 from b where b.k = a.k and b.s = a.s)", 1),
    ("select k, x from a where k < 9 or exists (select 1 from b where b.k = a.k and b.y < a.x)", 1),
    ("select k, x from a where k < 9 or exists (select 1 from b where b.k is not distinct from a.k)", 1),
    // Aggregations: functions, filters, expressions, keys of all types.
    ("select count(*), sum(x), min(x), max(x), avg(x), min(s), max(s), sum(m), avg(m), count(s) from a", 1),
    ("select k, count(*), sum(x), min(m), max(m), avg(m), count(distinct x) from a group by k", 1),
    ("select s, sum(m * (1 - m)), sum(case when x > 40 then m else 0 end) from a group by s", 1),
    ("select s, count(*) filter (where x > 30), sum(x) filter (where s like '%1') from a group by s", 1),
    ("select day, b8, i16, u32, count(*) from a group by day, b8, i16, u32", 1),
    ("select date_part('year', day), date_part('month', day), sum(x) from a group by 1, 2", 1),
    ("select x % 7, x / 3, -x, sum(i16), sum(u32), sum(f) from a group by 1, 2, 3", 1),
    ("select distinct s, k from a", 1),
    ("select b.s, sum(a.m), avg(a.f) from a join b on a.k = b.k group by b.s", 1),
    ("select b.s, count(a.x) from a right join b on a.k = b.k group by b.s", 1),
    ("select count(*) from a where x in (3, 5, 8, 13) or s not in ('w1', 'w2') and m between 0.1 and 0.7", 1),
    ("select count(*) from a where k is null or not (x < 10) or day >= date '1995-03-01'", 1),
    ("select s, max(c) from (select s, k, count(*) as c from a group by s, k) group by s", 1),
    // Sorts.
    ("select x, s, k from a order by s desc, x, k nulls first", 1),
    ("select k, c from (select k, count(*) as c from a group by k) order by c desc, k limit 5", 1),
    ("select s, sum(m) from a where k > 3 group by s order by 2 desc, 1", 1),
    ("select x + 1, k from a order by x + 1 desc, k", 1),
    // A condition that is computed, beside one that is not.
    ("select k, sum(x) from a where x <> 0 and case when x <> 0 then 100 / x else 0 end > 3 group by k", 1),
    // States in DataFusion's layout, below a limit that stays there.
    ("select s, avg(m), avg(f), count(x) from a join b using (k, s) group by s limit 100", 0),
    ("select distinct s from a limit 100", 0),
    ("select x, count(*) from a join b on a.k = b.k where b.y > 10 group by x limit 100", 0),
    // Limits: of a join's rows, which are any, and of an order.
    ("select count(*) from (select a.x, b.s from a join b on a.k = b.k limit 17) t", 1),
    ("select count(*) from (select a.x, b.s from a left join b on a.x = b.y limit 20000 offset 30) t", 1),
    ("select count(*) from (select a.x, b.s from a full join b on a.k = b.k limit 100000) t", 1),
    ("select count(*) from (select * from a where x not in (select y from b where y > 9) limit 50) t", 1),
    ("select count(*) from (select * from a where x not in (select y from c order by y limit 2) limit 50) t", 1),
    ("select a.x, b.y, a.s from a join b on a.k = b.k order by 1 desc, 2, 3 limit 40", 1),
    ("select a.x, a.s, a.m from a where x in (select y from b where k > 5) order by 1, 2 desc, 3 limit 9 offset 3", 1),
    // Nothing that Quern has.
    ("select f, count(*) from a group by f", 0),
    ("select count(*) from a where f > 0.5", 0),
    ("select s || 'x' from a", 0),
];

const ROWS: Rows = Rows { a: 3000, b: 400, c: 60 };

async fn compare(setting: Setting, rows: Rows) {
    let (stock, quern) = sessions(setting, rows).await;
    for (query, least) in QUERIES {
        let expected = answer(&stock, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let given = answer(&quern, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(given, expected, "{query} with {setting:?}");
        let replaced = nodes(&quern, query).await;
        assert!(replaced >= *least, "{query}: {replaced} nodes with {setting:?}");
    }
}

#[tokio::test]
async fn one_partition() {
    compare(Setting { partitions: 1, batch_rows: 8192, ..Setting::default() }, ROWS).await;
}

#[tokio::test]
async fn two_partitions() {
    compare(Setting { partitions: 2, batch_rows: 100, ..Setting::default() }, ROWS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_partitions_on_four_threads() {
    compare(Setting { partitions: 8, batch_rows: 65_536, ..Setting::default() }, ROWS).await;
}

#[tokio::test]
async fn batches_of_one_row() {
    let rows = Rows { a: 500, b: 100, c: 30 };
    compare(Setting { partitions: 2, batch_rows: 1, ..Setting::default() }, rows).await;
}

#[tokio::test]
async fn an_empty_table() {
    let (stock, quern) = sessions(Setting::default(), Rows { a: 0, b: 0, c: 0 }).await;
    for (query, _) in QUERIES {
        let expected = answer(&stock, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(answer(&quern, query).await.ok(), Some(expected), "{query}");
    }
}

// ---- a session's own functions ----

/// A sum with the other sign.
#[derive(Debug, Default)]
struct Owed(i64);

impl Accumulator for Owed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0 -= as_int64_array(&values[0])?.iter().flatten().sum::<i64>();
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::from(self.0))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::from(self.0)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0 += as_int64_array(&states[0])?.iter().flatten().sum::<i64>();
        Ok(())
    }
}

#[tokio::test]
async fn a_function_under_the_name_of_another_one_is_the_sessions() -> Result<()> {
    let (stock, quern) = sessions(Setting::default(), ROWS).await;
    let int = DataType::Int64;
    let make: AccumulatorFactoryFunction = Arc::new(|_| Ok(Box::new(Owed::default())));
    let sum =
        create_udaf("sum", vec![int.clone()], Arc::new(int.clone()), Volatility::Immutable, make, vec![int].into());
    for context in [&stock, &quern] {
        context.register_udaf(sum.clone());
    }
    let sums = "select s, sum(arrow_cast(x, 'Int64')) from a group by s";
    assert_eq!(answer(&quern, sums).await?, answer(&stock, sums).await?);
    assert_eq!(nodes(&quern, sums).await, 0);
    assert_ne!(nodes(&quern, "select s, min(x) from a group by s").await, 0);
    Ok(())
}

// ---- plans that are sent as bytes ----

fn codec() -> QuernCodec {
    QuernCodec::new(Arc::new(DefaultPhysicalExtensionCodec {}))
}

async fn send(setting: Setting) -> Result<()> {
    let (stock, quern) = sessions(setting, Rows { a: 700, b: 120, c: 60 }).await;
    for (query, _) in QUERIES {
        let plan = quern.sql(query).await?.create_physical_plan().await?;
        let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec())?;
        let arrived = physical_plan_from_bytes_with_extension_codec(&bytes, &quern.task_ctx(), &codec())?;
        assert_eq!(count_nodes(&arrived), count_nodes(&plan), "{query}");
        // What has arrived can be sent on.
        let again = physical_plan_to_bytes_with_extension_codec(Arc::clone(&arrived), &codec())?;
        assert_eq!(again.len(), bytes.len(), "{query}");
        let rows = texts(query, &collect(arrived, quern.task_ctx()).await?)?;
        assert_eq!(rows, answer(&stock, query).await?, "{query} with {setting:?}");
    }
    Ok(())
}

#[tokio::test]
async fn plans_of_one_partition_are_sent() -> Result<()> {
    send(Setting { partitions: 1, ..Setting::default() }).await
}

#[tokio::test]
async fn plans_of_five_partitions_are_sent() -> Result<()> {
    send(Setting { partitions: 5, batch_rows: 100, ..Setting::default() }).await
}

#[tokio::test]
async fn bytes_that_are_no_plan_are_refused() {
    let (_, quern) = sessions(Setting::default(), Rows { a: 10, b: 10, c: 10 }).await;
    let context = quern.task_ctx();
    for bytes in [&b""[..], b"quern", b"quern.v1", b"quern.v1\xff\xff\xff", b"quern.v1\x10\x05"] {
        let decoded = codec().try_decode(bytes, &[], &context, &DefaultPhysicalProtoConverter {});
        assert!(decoded.is_err(), "{bytes:?}");
    }
}
