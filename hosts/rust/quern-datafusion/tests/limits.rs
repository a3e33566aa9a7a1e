// SPDX-License-Identifier: Apache-2.0
//! What a session may rely on beside right rows: settings, memory pools, overflow, cancellation.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use common::{Rows, Setting, answer, nodes, sessions};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::MemTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::col;
use futures::StreamExt;
use quern_datafusion::QuernConfig;

const ROWS: Rows = Rows { a: 200_000, b: 60_000, c: 1000 };

#[tokio::test]
async fn settings_turn_operators_off() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), Rows { a: 100, b: 100, c: 10 }).await;
    let join = "select a.x, b.y from a join b on a.k = b.k order by 1, 2";
    assert_eq!(nodes(&quern, join).await, 1);
    quern.sql("set quern.sorts = false").await?;
    assert_eq!(nodes(&quern, join).await, 1);
    quern.sql("set quern.joins = false").await?;
    assert_eq!(nodes(&quern, join).await, 0);
    assert_eq!(nodes(&quern, "select k, count(*) from a group by k").await, 1);
    quern.sql("set quern.aggregates = false").await?;
    assert_eq!(nodes(&quern, "select k, count(*) from a group by k").await, 0);
    quern.sql("set quern.aggregates = true").await?;
    quern.sql("set quern.enabled = false").await?;
    assert_eq!(nodes(&quern, "select k, count(*) from a group by k").await, 0);
    Ok(())
}

#[tokio::test]
async fn a_plan_shows_its_kernels() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), Rows { a: 100, b: 100, c: 10 }).await;
    let text = "select b.s, sum(a.x) from a join b on a.k = b.k where a.x < 9 group by b.s";
    let plan = quern.sql(text).await?.create_physical_plan().await?;
    let text = displayable(plan.as_ref()).indent(false).to_string();
    for part in [
        "build 0: child 0",
        "filter i64:nullable < 9",
        "probe 0: join.inner keys=i32:nullable build=i64:nullable probe=utf8_view:nullable",
        "aggregate keys=utf8_view:nullable aggs=sum(i64:nullable)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    collect(plan.clone(), quern.task_ctx()).await?;
    let metrics = plan.metrics().or_else(|| plan.children()[0].metrics());
    assert!(metrics.is_some_and(|metrics| metrics.output_rows().is_some()));
    Ok(())
}

/// Pools of less memory than the rows take: what does not fit is written, or runs as the plan that was replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_pools() -> Result<()> {
    let queries = [
        "select x, k, s, day, count(*), sum(m) from a group by x, k, s, day",
        "select a.x, a.s, b.s from a join (select distinct k, y, s from b) b on a.k = b.k and a.x = b.y and a.s = b.s",
        "select s, day, x, k, m, b8, i16, u32 from a order by s, day, x, k, m, b8, i16, u32",
        "select a.s, sum(a.x), min(b.y) from a join (select distinct k, y, s from b) b \
            on a.k = b.k and a.x = b.y and a.s = b.s where a.x in (select y from c) group by a.s",
    ];
    for pool_bytes in [128 << 20, 64 << 20, 40 << 20] {
        let (stock, _) = sessions(Setting::default(), ROWS).await;
        let (_, quern) = sessions(Setting { pool_bytes, ..Setting::default() }, ROWS).await;
        for text in queries {
            let given = answer(&quern, text).await.map_err(|error| error.context(format!("{text}: {pool_bytes}")))?;
            assert_eq!(given, answer(&stock, text).await?, "{text} with {pool_bytes} bytes");
        }
        assert_eq!(quern.runtime_env().memory_pool.reserved(), 0);
    }
    Ok(())
}

/// A sum that leaves 64 bits wraps around in `DataFusion`, and is an error of kernels.
#[tokio::test]
async fn a_fragment_that_fails_runs_as_the_plan_that_it_replaced() -> Result<()> {
    let text = "select k, sum(x * 400000000000000000) from a group by k";
    let (stock, quern) = sessions(Setting { fall_back: true, ..Setting::default() }, ROWS).await;
    assert_eq!(nodes(&quern, text).await, 1);
    assert_eq!(answer(&quern, text).await?, answer(&stock, text).await?);
    let (_, strict) = sessions(Setting::default(), ROWS).await;
    let error = answer(&strict, text).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("sum"), "{error}");
    Ok(())
}

/// Errors of the plan below stay what they are.
#[tokio::test]
async fn errors_of_children() -> Result<()> {
    let (stock, quern) = sessions(Setting::default(), Rows { a: 1000, b: 10, c: 10 }).await;
    let text = "select k, sum(arrow_cast(s || '!', 'Int64')) from a group by k";
    let (expected, given) = (answer(&stock, text).await.err(), answer(&quern, text).await.err());
    let (Some(expected), Some(given)) = (expected, given) else { panic!("no error") };
    assert!(given.to_string().contains("Cannot cast string"), "{given}; {expected}");
    Ok(())
}

/// Dropping a stream ends its tasks, and gives back its memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_streams() -> Result<()> {
    let (_, quern) = sessions(Setting { pool_bytes: 1 << 30, ..Setting::default() }, ROWS).await;
    let text = "select a.x, b.s from a join b on a.x = b.y";
    for polls in 0..4 {
        let mut rows = quern.sql(text).await?.execute_stream().await?;
        for _ in 0..polls {
            assert_eq!(rows.next().await.transpose()?.map(|batch| batch.num_columns()), Some(2));
        }
        drop(rows);
    }
    for _ in 0..100 {
        if quern.runtime_env().memory_pool.reserved() == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} bytes are still reserved", quern.runtime_env().memory_pool.reserved());
}

/// A plan may run again, and two runs at once are two runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_run_again() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), Rows { a: 5000, b: 500, c: 10 }).await;
    let text = "select b.s, sum(a.x) from a join b on a.k = b.k group by b.s";
    let plan = quern.sql(text).await?.create_physical_plan().await?;
    let mut counts = vec![];
    for _ in 0..3 {
        let rows = collect(plan.clone(), quern.task_ctx()).await?;
        counts.push(rows.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>());
    }
    assert!(counts[0] > 0 && counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    Ok(())
}

/// Where rows come in an order, groups and joins of `DataFusion` keep it, and it plans no sort above them.
#[tokio::test]
async fn orders_of_tables() -> Result<()> {
    let (stock, quern) = sessions(Setting::default(), Rows { a: 3000, b: 300, c: 10 }).await;
    for context in [&stock, &quern] {
        let rows = context.sql("select k, x, s from a where k is not null order by k").await?.collect().await?;
        let schema = rows[0].schema();
        let order = vec![vec![col("k").sort(true, false)]];
        let table = MemTable::try_new(schema, vec![rows])?.with_sort_order(order);
        context.register_table("ordered", Arc::new(table))?;
    }
    for text in [
        "select k, count(*), sum(x) from ordered group by k order by k",
        "select o.k, b.s from ordered o join (select distinct k, s from b) b on o.k = b.k order by o.k, b.s",
        "select k, max(s) from ordered where x > 5 group by k order by k limit 7",
    ] {
        assert_eq!(answer(&quern, text).await?, answer(&stock, text).await?, "{text}");
    }
    Ok(())
}

/// Batches of other types than the plan of a source says.
#[derive(Debug)]
struct WrongTypes(SchemaRef);

impl PartitionStream for WrongTypes {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 2]));
        let batch = RecordBatch::try_from_iter_with_nullable([("x", narrow, true)]).map_err(DataFusionError::from);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.0), futures::stream::iter([batch])))
    }
}

/// Kernels rely on the types that plans say, so that no others reach them.
#[tokio::test]
async fn batches_of_other_types() -> Result<()> {
    // More partitions would need a repartition, which copies rows by what the plan says.
    let setting = Setting { partitions: 1, ..Setting::default() };
    let (_, quern) = sessions(setting, Rows { a: 10, b: 10, c: 10 }).await;
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, true)]));
    let stream: Arc<dyn PartitionStream> = Arc::new(WrongTypes(Arc::clone(&schema)));
    quern.register_table("wrong", Arc::new(StreamingTable::try_new(schema, vec![stream])?))?;
    for text in [
        "select x, count(*) from wrong group by x",
        "select x from wrong order by x",
        "select a.s, w.x from (select distinct x, s from a) a join wrong w on a.x = w.x",
    ] {
        let error = answer(&quern, text).await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("column of type Int32; accepted: Int64, as its plan says"), "{text}: {error}");
    }
    Ok(())
}

#[test]
fn settings_have_their_whole_names() {
    let mut options = ConfigOptions::new();
    options.extensions.insert(QuernConfig::default());
    options.set("quern.joins", "false").expect("a setting");
    let value = |key: &str| options.entries().into_iter().find(|entry| entry.key == key).and_then(|entry| entry.value);
    assert_eq!(value("quern.joins").as_deref(), Some("false"));
    assert_eq!(value("quern.enabled").as_deref(), Some("true"));
    for (key, bad) in [("quern.joins", "maybe"), ("quern.unknown", "true")] {
        let error = options.clone().set(key, bad).expect_err("a bad setting").to_string();
        assert!(error.contains("accepted: "), "{error}");
    }
}
