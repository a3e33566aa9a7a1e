// SPDX-License-Identifier: Apache-2.0
//! What a session sees of replaced fragments: metrics and statistics.

#![expect(clippy::expect_used, reason = "a test may panic")]

mod common;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use common::{Rows, Setting, nodes, sessions};
use datafusion::common::Result;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;

const ROWS: Rows = Rows { a: 20_000, b: 2000, c: 100 };

async fn plan_of(context: &SessionContext, query: &str) -> Result<Arc<dyn ExecutionPlan>> {
    context.sql(query).await?.create_physical_plan().await
}

/// The first node of Quern's from the top.
fn first_node(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if plan.name() == "QuernExec" { Some(plan) } else { plan.children().into_iter().find_map(first_node) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_of_a_run() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), ROWS).await;
    // The query; rows of tables, rows of the chain, and whether these are as many for every plan.
    let queries = [
        ("select b.s, sum(a.x) from a join b on a.x = b.y group by b.s", Some(ROWS.b), Some(ROWS.a)),
        ("select a.x, b.s from a left join b on a.s = b.s and a.x = b.y", None, None),
        ("select k, x, s from a order by k, x, s", Some(0), Some(ROWS.a)),
        ("select k, sum(m) from a group by k", Some(0), Some(ROWS.a)),
    ];
    for (query, build_rows, rows) in queries {
        let plan = plan_of(&quern, query).await?;
        let node = first_node(&plan).expect("a node");
        let given: usize = collect(Arc::clone(&plan), quern.task_ctx()).await?.iter().map(RecordBatch::num_rows).sum();
        let metrics = node.metrics().expect("metrics");
        let sum = |name: &str| metrics.sum_by_name(name).map(|value| value.as_usize());
        assert!(metrics.elapsed_compute().is_some_and(|nanoseconds| nanoseconds > 10_000), "{query}: {metrics}");
        assert_eq!(metrics.output_rows(), Some(given), "{query}: {metrics}");
        assert_eq!(sum("fallbacks"), Some(0), "{query}: {metrics}");
        let (of_tables, of_chain) = (sum("build_input_rows").unwrap_or(0), sum("input_rows").unwrap_or(0));
        if let (Some(build_rows), Some(rows)) = (build_rows, rows) {
            // A null key matches nothing and is not stored, but it came in.
            assert_eq!((of_tables, of_chain), (build_rows, rows), "{query}: {metrics}");
        } else {
            assert_eq!(of_tables + of_chain, ROWS.a + ROWS.b, "{query}: {metrics}");
        }
    }
    Ok(())
}

/// The plan of a query, with the statistics of each node.
async fn explained(context: &SessionContext, query: &str) -> Result<String> {
    context.sql("set datafusion.explain.show_statistics = true").await?;
    let rows = context.sql(&format!("explain {query}")).await?.collect().await?;
    Ok(arrow::util::pretty::pretty_format_batches(&rows)?.to_string())
}

/// Statistics of a fragment are those of the plan that it replaces.
#[tokio::test]
async fn statistics() -> Result<()> {
    let (stock, quern) = sessions(Setting::default(), ROWS).await;
    let compute =
        |plan: &Arc<dyn ExecutionPlan>| StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    for query in [
        "select k, x, s from a order by k, x, s",
        "select sum(x), count(*) from a",
        "select k, count(*) from a group by k",
        "select a.x, b.s from a join b on a.x = b.y",
        "select a.x, b.s from a left join b on a.x = b.y",
        "select k, c from (select k, count(*) as c from a group by k) order by c desc, k limit 5",
    ] {
        let (expected, given) = (plan_of(&stock, query).await?, plan_of(&quern, query).await?);
        assert!(first_node(&given).is_some(), "{query}");
        assert_eq!(compute(&given)?, compute(&expected)?, "{query}");
    }
    let plan = explained(&quern, "select sum(x) from a").await?;
    let line = plan.lines().find(|line| line.contains("QuernExec")).unwrap_or_default();
    assert!(line.contains("statistics=[Rows=Exact(1)"), "{plan}");
    Ok(())
}

/// What fragments have of joins and limits.
#[tokio::test]
async fn parts_of_fragments() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), ROWS).await;
    for (query, kind) in [
        ("select * from a where x not in (select y from b)", "join.anti_null_aware keys=i64:nullable"),
        ("select * from a where x in (select y from b) or k = 3", "join.mark keys=i64:nullable:nullequal"),
        ("select k from a where k < 9 or exists (select 1 from b where b.k = a.k and b.y < a.x)", "residual="),
        ("select a.x, b.y from a join b on a.k = b.k and a.x > b.y + 5", "residual=i64:nullable:gt"),
        ("select a.x, b.y from a join b on a.k = b.k and a.x < b.y and a.s < b.s", " residual="),
        ("select a.x, b.y from a join b on a.k = b.k and a.x < b.y and a.s < b.s", "FilterExec: s@2 < s@3"),
        ("select a.x, b.s from a join b on a.k = b.k limit 7", " -> first 7 rows"),
        ("select a.x, b.s, a.m from a join b on a.k = b.k order by 1, 2, 3 limit 7", " limit=7"),
    ] {
        let plan = plan_of(&quern, query).await?;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert!(text.contains(kind), "{kind} in {text}");
    }
    Ok(())
}

/// What the key of a later join takes away does not enter the tables of earlier ones.
#[tokio::test]
async fn reductions() -> Result<()> {
    let (stock, quern) = sessions(Setting::default(), ROWS).await;
    let from_c = "from b join a on b.k = a.k join c on";
    for (query, is_reduced) in [
        // A column of a table, of the chain, and of a table of a table.
        (format!("select count(*), sum(a.x) {from_c} b.y = c.y where c.y < 20"), true),
        (format!("select a.x, c.d {from_c} a.x = c.y where c.y < 20"), true),
        ("select count(*) from b join a on b.k = a.k where b.y in (select y from c where y < 20)".to_owned(), true),
        // All rows of c, a computed key, and rows that come out without a match.
        (format!("select count(*), sum(a.x) {from_c} b.y = c.y"), false),
        (format!("select count(*) {from_c} b.y + a.x = c.y where c.y < 20"), false),
        (
            "select count(*), sum(a.x), sum(b.y) from b join a on b.k = a.k left join c on b.y = c.y and c.y < 20"
                .to_owned(),
            false,
        ),
    ] {
        let plan = plan_of(&quern, &query).await?;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(text.contains("-> reduce by "), is_reduced, "{query}: {text}");
        assert_eq!(common::answer(&quern, &query).await?, common::answer(&stock, &query).await?, "{query}");
    }
    Ok(())
}

/// A sort with a limit stays where it prunes a scan, or is above one alone.
#[tokio::test]
async fn sorts_that_prune() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), ROWS).await;
    let folder = std::env::temp_dir().join(format!("quern-datafusion-{}", std::process::id()));
    let file = folder.join("a.parquet").display().to_string();
    quern.sql(&format!("copy a to '{file}' stored as parquet")).await?.collect().await?;
    quern.sql(&format!("create external table p stored as parquet location '{file}'")).await?;
    for (query, is_replaced) in [
        ("select x, s, m from a order by x, s, m limit 5", false),
        ("select p.x, p.s, b.y from p join b on p.k = b.k order by p.x, p.s limit 5", false),
        ("select p.x, p.s, b.y from p join b on p.k = b.k order by p.x, b.y limit 5", true),
    ] {
        let plan = plan_of(&quern, query).await?;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        assert_eq!(text.contains("sort keys="), is_replaced, "{query}: {text}");
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// The table of a subquery is not built where it is far larger than that of the outer rows.
#[tokio::test]
async fn large_subqueries() -> Result<()> {
    let (_, quern) = sessions(Setting::default(), ROWS).await;
    let numbers: Int64Array = (0..1 << 21).collect::<Vec<i64>>().into();
    let rows = RecordBatch::try_from_iter_with_nullable([("n", Arc::new(numbers) as ArrayRef, true)])?;
    quern.register_batch("large", rows)?;
    assert_eq!(nodes(&quern, "select * from a where x not in (select n from large)").await, 0);
    assert_eq!(nodes(&quern, "select * from large where n not in (select x from a)").await, 1);
    Ok(())
}
