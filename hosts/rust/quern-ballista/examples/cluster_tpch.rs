// SPDX-License-Identifier: Apache-2.0
//! TPC-H on a cluster of processes of this machine, with and without Quern, by turns:
//!
//! ```text
//! cluster_tpch --data FOLDER --queries FOLDER [--only 1,3] [--executors 2] [--vcores 1] [--partitions 2] [--rounds 3]
//!      [--stages]
//! ```
//!
//! Every answer is compared with that of the same cluster without Quern, and both with that of `DataFusion` in this
//! process. `--stages` prints what each executor has run of each stage. The last line has the geometric mean of the
//! ratios and the smallest one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use arrow::array::RecordBatch;
use ballista::prelude::SessionContextExt;
use ballista_core::extension::SessionConfigExt;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use quern_datafusion::QuernConfig;

#[path = "../tests/common/cluster.rs"]
mod cluster;
#[path = "../../quern-datafusion/examples/tpch/common.rs"]
mod common;

use cluster::{Cluster, ClusterOptions};
use common::{Arguments, Outcome, TABLES, print_mean, rows_of, text_of};

struct Options {
    data: PathBuf,
    queries: PathBuf,
    only: Vec<u32>,
    executors: usize,
    vcores: usize,
    partitions: usize,
    rounds: usize,
    stages: bool,
}

impl Options {
    fn parse() -> Outcome<Self> {
        let arguments = Arguments::of_program(&["--stages"])?;
        Ok(Self {
            data: arguments.path("--data")?,
            queries: arguments.path("--queries")?,
            only: arguments.queries()?,
            executors: arguments.number("--executors", 2)?,
            vcores: arguments.number("--vcores", 1)?,
            partitions: arguments.number("--partitions", 2)?,
            rounds: arguments.number("--rounds", 3)?,
            stages: arguments.has("--stages"),
        })
    }
}

async fn with_tables(context: SessionContext, options: &Options) -> Outcome<SessionContext> {
    for table in TABLES {
        let file = options.data.join(format!("{table}.parquet")).canonicalize()?;
        context.register_parquet(table, file.to_str().ok_or("name of a file")?, ParquetReadOptions::default()).await?;
    }
    Ok(context)
}

async fn client(options: &Options, url: &str, enabled: bool) -> Outcome<SessionContext> {
    let mut settings = QuernConfig::default();
    settings.enabled = enabled;
    let config =
        SessionConfig::new_with_ballista().with_target_partitions(options.partitions).with_option_extension(settings);
    let state = SessionStateBuilder::new().with_default_features().with_config(config).build();
    with_tables(SessionContext::remote_with_state(url, state).await?, options).await
}

async fn timed(context: &SessionContext, text: &str) -> Outcome<(f64, Vec<RecordBatch>)> {
    let start = Instant::now();
    let rows = context.sql(text).await?.collect().await?;
    Ok((start.elapsed().as_secs_f64(), rows))
}

/// What executors have run since the counts of their tasks that are given, by stage; the counts are brought up to date.
fn print_stages(cluster: &Cluster, seen: &mut [usize]) -> Outcome<()> {
    let mut stages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (executor, seen) in seen.iter_mut().enumerate() {
        let tasks = cluster.tasks_of(executor)?;
        for task in &tasks[*seen..] {
            let (place, plan) = task.split_once(": ").unwrap_or(("", task));
            let (job, stage, number) = match place.split(", ").collect::<Vec<_>>()[..] {
                [job, stage, number] => (job, stage, number),
                _ => ("", place, ""),
            };
            stages.entry(format!("{job}, {stage}: {plan}")).or_default().push(format!("executor {executor} {number}"));
        }
        *seen = tasks.len();
    }
    for (stage, tasks) in stages {
        let (_, stage) = stage.split_once(", ").unwrap_or(("", &stage));
        println!("         {stage}\n           {}", tasks.join(", "));
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let options = Options::parse()?;
    let programs = cluster::programs_beside(&std::env::current_exe()?).ok_or("no folder of programs")?;
    let cluster = Cluster::start(&ClusterOptions {
        programs,
        executors: options.executors,
        vcores: options.vcores,
        policy: "push-staged",
        memory: None,
    })?;
    let local = with_tables(SessionContext::new(), &options).await?;
    let stock = client(&options, &cluster.url(), false).await?;
    let quern = client(&options, &cluster.url(), true).await?;
    let mut seen = vec![0; options.executors];
    let mut ratios: Vec<f64> = vec![];
    let mut wrong = 0;
    println!("query  Ballista ms  with Quern ms  ratio  shuffled KiB  with Quern  answer");
    for number in &options.only {
        let text = text_of(&options.queries.join(format!("q{number:02}.sql")))?;
        let expected = rows_of(&timed(&local, &text).await?.1)?;
        let (mut without, mut with) = (f64::MAX, f64::MAX);
        let mut is_equal = true;
        let mut shuffled = (0, 0);
        for _ in 0..options.rounds {
            let before = cluster.shuffled_bytes()?;
            let (seconds, rows) = timed(&stock, &text).await?;
            without = without.min(seconds);
            is_equal &= rows_of(&rows)? == expected;
            let between = cluster.shuffled_bytes()?;
            for (executor, seen) in seen.iter_mut().enumerate() {
                *seen = cluster.tasks_of(executor)?.len();
            }
            let (seconds, rows) = timed(&quern, &text).await?;
            with = with.min(seconds);
            is_equal &= rows_of(&rows)? == expected;
            shuffled = (between - before, cluster.shuffled_bytes()? - between);
        }
        wrong += i32::from(!is_equal);
        ratios.push(without / with);
        let answer = if is_equal { "equal" } else { "WRONG" };
        println!(
            "{number:5}  {:11.1}  {:13.1}  {:5.2}  {:12}  {:10}  {answer}",
            without * 1e3,
            with * 1e3,
            without / with,
            shuffled.0 >> 10,
            shuffled.1 >> 10
        );
        if options.stages {
            print_stages(&cluster, &mut seen)?;
        }
    }
    print_mean(&ratios);
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} queries differ").into()) }
}
