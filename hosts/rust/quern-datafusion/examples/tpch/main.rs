// SPDX-License-Identifier: Apache-2.0
//! TPC-H with and without Quern, by turns, in one process:
//!
//! ```text
//! tpch --data FOLDER --queries FOLDER [--only 1,3] [--partitions 2] [--rounds 3] [--batch-rows 8192]
//!      [--memory-tables] [--pool-mib N] [--explain] [--force] [--scans]
//! ```
//!
//! Every answer is compared with that of `DataFusion` alone, without a pool where it fails within that of `--pool-mib`.
//! The last lines have the geometric mean of the ratios and the smallest one. `--force` fails where a fragment falls
//! back to the plan that it replaced. `--explain` prints the plans of the last round, with metrics. `--scans` also runs
//! the scans of each plan with Quern alone, whose rows nobody takes: no kernel makes a query faster than these are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream_partitioned};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use quern_datafusion::QuernConfig;
use tokio::task::JoinSet;

mod common;

use common::{Arguments, Outcome, TABLES, print_mean, rows_of, text_of};

struct Options {
    data: PathBuf,
    queries: PathBuf,
    only: Vec<u32>,
    partitions: usize,
    rounds: usize,
    batch_rows: usize,
    pool_mib: usize,
    flags: Arguments,
}

impl Options {
    fn parse() -> Outcome<Self> {
        let arguments = Arguments::of_program(&["--memory-tables", "--explain", "--force", "--scans"])?;
        Ok(Self {
            data: arguments.path("--data")?,
            queries: arguments.path("--queries")?,
            only: arguments.queries()?,
            partitions: arguments.number("--partitions", 2)?,
            rounds: arguments.number("--rounds", 3)?,
            batch_rows: arguments.number("--batch-rows", 8192)?,
            pool_mib: arguments.number("--pool-mib", 0)?,
            flags: arguments,
        })
    }
}

async fn session(options: &Options, with_quern: bool, pool_mib: usize) -> Outcome<SessionContext> {
    let config = SessionConfig::new().with_target_partitions(options.partitions).with_batch_size(options.batch_rows);
    let mut builder = SessionStateBuilder::new().with_default_features().with_config(config);
    if pool_mib != 0 {
        let pool = Arc::new(FairSpillPool::new(pool_mib << 20));
        builder = builder.with_runtime_env(Arc::new(RuntimeEnvBuilder::new().with_memory_pool(pool).build()?));
    }
    if with_quern {
        builder = quern_datafusion::enable(builder);
        if options.flags.has("--force")
            && let Some(config) = builder.config()
            && let Some(settings) = config.options_mut().extensions.get_mut::<QuernConfig>()
        {
            settings.fall_back = false;
        }
    }
    let context = SessionContext::new_with_state(builder.build());
    for table in TABLES {
        let file = options.data.join(format!("{table}.parquet"));
        let name = file.to_str().ok_or("name of a file")?;
        if options.flags.has("--memory-tables") {
            let rows = context.read_parquet(name, ParquetReadOptions::default()).await?;
            let schema = Arc::clone(rows.schema().inner());
            let parts = rows.collect_partitioned().await?;
            context.register_table(table, Arc::new(MemTable::try_new(schema, parts)?))?;
        } else {
            context.register_parquet(table, name, ParquetReadOptions::default()).await?;
        }
    }
    Ok(context)
}

async fn timed(context: &SessionContext, text: &str) -> Outcome<(f64, Vec<RecordBatch>, Arc<dyn ExecutionPlan>)> {
    let start = Instant::now();
    let plan = context.sql(text).await?.create_physical_plan().await?;
    let rows = collect(Arc::clone(&plan), context.task_ctx()).await?;
    Ok((start.elapsed().as_secs_f64(), rows, plan))
}

fn scans_of(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Arc<dyn ExecutionPlan>>) {
    if plan.children().is_empty() {
        found.push(Arc::clone(plan));
    }
    plan.children().into_iter().for_each(|child| scans_of(child, found));
}

/// Seconds that the scans of the query's plan take, one after the other, each with all its partitions at once.
async fn scan_seconds(context: &SessionContext, text: &str) -> Outcome<f64> {
    let plan = context.sql(text).await?.create_physical_plan().await?;
    let mut scans = vec![];
    scans_of(&plan, &mut scans);
    let start = Instant::now();
    for scan in scans {
        let mut tasks = JoinSet::new();
        for mut rows in execute_stream_partitioned(scan, context.task_ctx())? {
            tasks.spawn(async move {
                while rows.next().await.transpose()?.is_some() {}
                Ok::<_, DataFusionError>(())
            });
        }
        while let Some(task) = tasks.join_next().await {
            task??;
        }
    }
    Ok(start.elapsed().as_secs_f64())
}

fn nodes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    usize::from(plan.name() == "QuernExec") + plan.children().into_iter().map(nodes).sum::<usize>()
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let options = Options::parse()?;
    let stock = session(&options, false, options.pool_mib).await?;
    let quern = session(&options, true, options.pool_mib).await?;
    let unlimited = session(&options, false, 0).await?;
    let mut ratios: Vec<f64> = vec![];
    let mut limits: Vec<f64> = vec![];
    let mut wrong = 0;
    println!("query  DataFusion ms  with Quern ms  ratio  nodes  answer");
    for number in &options.only {
        let text = text_of(&options.queries.join(format!("q{number:02}.sql")))?;
        let (mut without, mut with, mut scans) = (f64::MAX, f64::MAX, f64::MAX);
        let mut answer = String::from("equal");
        let mut replaced = 0;
        for round in 0..options.rounds {
            if options.flags.has("--scans") {
                scans = scans.min(scan_seconds(&quern, &text).await?);
            }
            let stocks = timed(&stock, &text).await;
            let querns = timed(&quern, &text).await;
            match (stocks, querns) {
                (Ok(stocks), Ok(querns)) => {
                    without = without.min(stocks.0);
                    with = with.min(querns.0);
                    replaced = nodes(&querns.2);
                    if round + 1 == options.rounds && options.flags.has("--explain") {
                        println!("{}", DisplayableExecutionPlan::with_metrics(querns.2.as_ref()).indent(false));
                    }
                    if rows_of(&stocks.1)? != rows_of(&querns.1)? {
                        "WRONG".clone_into(&mut answer);
                    }
                }
                (Err(error), Err(given)) => answer = format!("both fail: {error}; with Quern: {given}"),
                (Ok(_), Err(error)) => answer = format!("FAILS: {error}"),
                (Err(error), Ok(querns)) => {
                    let equal = rows_of(&timed(&unlimited, &text).await?.1)? == rows_of(&querns.1)?;
                    let found = if equal { "equal" } else { "WRONG" };
                    answer = format!("{found}; {:.1} ms; DataFusion alone fails: {error}", querns.0 * 1e3);
                }
            }
        }
        let good = answer.starts_with("equal") || answer.starts_with("both");
        wrong += i32::from(!good);
        if with < f64::MAX {
            ratios.push(without / with);
            println!(
                "{number:5}  {:13.1}  {:13.1}  {:5.2}  {replaced:5}  {answer}",
                without * 1e3,
                with * 1e3,
                without / with
            );
            if options.flags.has("--scans") {
                println!("       scans alone {:.1}, {:.2} times", scans * 1e3, without / scans);
                limits.push(without / scans);
            }
        } else {
            println!("{number:5}  {answer}");
        }
    }
    print_mean(&ratios);
    if options.flags.has("--scans") {
        print!("scans alone: ");
        print_mean(&limits);
    }
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} queries differ").into()) }
}
