// SPDX-License-Identifier: Apache-2.0
//! Queries on a scheduler and two executors, which are processes, against `DataFusion` in this one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use ballista::prelude::SessionContextExt;
use ballista_core::extension::SessionConfigExt;
use datafusion::common::{DataFusionError, Result};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use quern_datafusion::QuernConfig;

#[path = "common/cluster.rs"]
mod cluster;

use cluster::{Cluster, ClusterOptions};
use quern_ballista::collect_again;

const TABLES: [(&str, &str); 3] = [
    (
        "orders",
        "select value as o_key, value * 7 % 997 as o_customer, cast(value % 1000 as decimal(15, 2)) as o_price, \
         cast(cast(9131 + value % 700 as int) as date) as o_date from generate_series(1, 40000)",
    ),
    (
        "lines",
        "select value % 40011 as l_order, value % 7 as l_number, cast(value % 100 as decimal(15, 2)) as l_price, \
         case when value % 13 = 0 then null else concat('mode ', value % 5) end as l_mode \
         from generate_series(1, 160000)",
    ),
    ("customers", "select value as c_key, concat('name ', value % 50) as c_name from generate_series(1, 900)"),
];

const QUERIES: [&str; 14] = [
    "select l_mode, count(*), sum(l_price), avg(l_price), min(l_order), max(l_number) from lines group by l_mode",
    "select l_order, sum(l_price) from lines group by l_order having sum(l_price) > 250",
    "select c_name, sum(l_price) from lines join orders on l_order = o_key join customers on o_customer = c_key \
     where o_date < date '1996-01-01' group by c_name",
    "select o_date, count(*) from orders left join customers on o_customer = c_key where c_key is null group by o_date",
    "select count(*) from orders where exists (select * from lines where l_order = o_key and l_price > 98)",
    "select count(*) from orders where not exists (select * from lines where l_order = o_key)",
    "select count(*), count(c_key), sum(o_key) from orders full join customers on o_customer = c_key",
    "select o_customer, sum(l_price) as total from lines join orders on l_order = o_key group by o_customer \
     order by total desc, o_customer limit 10",
    "select o_key, o_price from orders where o_price > 900 order by o_price desc, o_key",
    "select count(distinct l_mode), count(distinct l_number) from lines",
    "select l_mode, count(distinct l_order) from lines group by l_mode",
    "select l_number, count(*) from (select l_number from lines union all select o_key % 9 from orders) \
     group by l_number",
    "select o_key, rank() over (partition by o_customer order by o_price desc, o_key) as place \
     from orders where o_customer < 20",
    "select o_customer, o_price from orders where o_price > (select avg(o_price) from orders) and o_customer < 50",
];

/// A folder with the tables as files, three each. It is removed when it is dropped.
struct Data(PathBuf);

impl Data {
    async fn write(name: &str) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("quern-ballista-data-{}-{name}", std::process::id()));
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
        for (table, query) in TABLES {
            let rows = context.sql(query).await?.collect().await?;
            let rows = arrow::compute::concat_batches(&rows[0].schema(), &rows)?;
            for (number, part) in parts_of(&rows, 3).into_iter().enumerate() {
                let file = folder.join(table).join(format!("{number}.parquet"));
                let frame = context.read_batch(part)?;
                frame
                    .write_parquet(text(&file)?, DataFrameWriteOptions::new().with_single_file_output(true), None)
                    .await?;
            }
        }
        Ok(Self(folder))
    }

    async fn register(&self, context: &SessionContext) -> Result<()> {
        for (table, _) in TABLES {
            context.register_parquet(table, text(&self.0.join(table))?, ParquetReadOptions::default()).await?;
        }
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| DataFusionError::Execution(format!("{} is no text", path.display())))
}

/// The rows, cut into parts.
fn parts_of(rows: &RecordBatch, parts: usize) -> Vec<RecordBatch> {
    let most = rows.num_rows().div_ceil(parts);
    (0..rows.num_rows()).step_by(most).map(|at| rows.slice(at, most.min(rows.num_rows() - at))).collect()
}

fn sorted_rows(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let options = FormatOptions::default().with_null("null");
    let mut rows = vec![];
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        rows.extend(
            (0..batch.num_rows())
                .map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|")),
        );
    }
    rows.sort();
    Ok(rows)
}

fn start(vcores: usize, memory: Option<&'static str>) -> Result<Cluster> {
    start_with(vcores, memory, "push-staged")
}

fn start_with(vcores: usize, memory: Option<&'static str>, policy: &'static str) -> Result<Cluster> {
    let executor = Path::new(env!("CARGO_BIN_EXE_quern-ballista-executor"));
    let programs = executor.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(Cluster::start(&ClusterOptions { programs, executors: 2, vcores, policy, memory })?)
}

async fn client(cluster: &Cluster, data: &Data, partitions: usize, settings: QuernConfig) -> Result<SessionContext> {
    client_of(cluster, data, settings, SessionConfig::new_with_ballista().with_target_partitions(partitions)).await
}

async fn client_of(
    cluster: &Cluster,
    data: &Data,
    settings: QuernConfig,
    config: SessionConfig,
) -> Result<SessionContext> {
    let config = config.with_option_extension(settings);
    let state = SessionStateBuilder::new().with_default_features().with_config(config).build();
    let context = SessionContext::remote_with_state(&cluster.url(), state).await?;
    data.register(&context).await?;
    Ok(context)
}

/// Quern's settings in tests: a fragment that fails is an error.
fn forced() -> QuernConfig {
    let mut settings = QuernConfig::default();
    settings.fall_back = false;
    settings
}

async fn rows_of(context: &SessionContext, query: &str) -> Result<Vec<String>> {
    sorted_rows(&context.sql(query).await?.collect().await?)
}

async fn expected(data: &Data, query: &str) -> Result<Vec<String>> {
    let local = SessionContext::new();
    data.register(&local).await?;
    rows_of(&local, query).await
}

/// How many tasks have run fragments, of all executors that are named.
fn fragments(cluster: &Cluster, executors: &[usize]) -> Result<usize> {
    let mut found = 0;
    for &executor in executors {
        found += cluster.tasks_of(executor)?.iter().filter(|task| task.contains("QuernExec")).count();
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_one_process() -> Result<()> {
    let data = Data::write("answers").await?;
    for (vcores, partitions) in [(1, 2), (2, 5)] {
        let cluster = start(vcores, None)?;
        let quern = client(&cluster, &data, partitions, forced()).await?;
        for query in QUERIES {
            let before = fragments(&cluster, &[0, 1])?;
            assert_eq!(rows_of(&quern, query).await?, expected(&data, query).await?, "{query}");
            let after = fragments(&cluster, &[0, 1])?;
            // States of several distinct counts, and windows, stay DataFusion's.
            let may_have_none = query.contains("over (") || query.contains("count(distinct l_mode), count(distinct");
            assert!(after > before || may_have_none, "no fragment: {query}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_session_reach_the_executors() -> Result<()> {
    let data = Data::write("settings").await?;
    let cluster = start(1, None)?;
    let mut settings = QuernConfig::default();
    settings.enabled = false;
    let off = client(&cluster, &data, 2, settings).await?;
    assert_eq!(rows_of(&off, QUERIES[0]).await?, expected(&data, QUERIES[0]).await?);
    assert_eq!(fragments(&cluster, &[0, 1])?, 0);
    off.sql("set quern.enabled = true").await?.collect().await?;
    assert_eq!(rows_of(&off, QUERIES[0]).await?, expected(&data, QUERIES[0]).await?);
    assert_ne!(fragments(&cluster, &[0, 1])?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sorted_runs_cross_the_shuffle() -> Result<()> {
    let data = Data::write("sorts").await?;
    let cluster = start(2, None)?;
    let quern = client(&cluster, &data, 4, forced()).await?;
    let sorted = "select o_price, o_key from orders order by o_price, o_key";
    let rows = quern.sql(sorted).await?.collect().await?;
    let local = SessionContext::new();
    data.register(&local).await?;
    let expected = local.sql(sorted).await?.collect().await?;
    let texts =
        |batches: &[RecordBatch]| arrow::util::pretty::pretty_format_batches(batches).map(|text| text.to_string());
    assert_eq!(texts(&rows)?, texts(&expected)?);
    let tasks = [cluster.tasks_of(0)?, cluster.tasks_of(1)?].concat();
    assert!(tasks.iter().any(|task| task.contains("QuernExec (sort)")), "{tasks:?}");
    Ok(())
}

/// A query that takes a while: an expression per row that no kernel shortens.
const LONG: &str = "select l_number, count(*), sum(o_price) from lines join orders on l_order % 500 = o_key % 500 \
                    group by l_number";

/// Waits until an executor has begun with fragments that it did not have.
async fn wait_for_task(cluster: &Cluster, executor: usize, before: usize) -> Result<()> {
    for _ in 0..600 {
        if fragments(cluster, &[executor])? > before {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(DataFusionError::Execution(format!("executor {executor} had no task in 6 seconds")))
}

/// A query whose stages all take a while, also those behind the first join.
const DEEP: &str = "select m_key, count(*), sum(m_sum * r_sum) from \
                    (select l_order % 3000 as m_key, sum(l_price) as m_sum from lines group by l_order % 3000) \
                    join (select o_key % 3001 as r_key, sum(o_price) as r_sum from orders group by o_key % 3001) \
                    on m_key % 3 = r_key % 3 group by m_key";

/// The job and the stage in a line that says what a task runs.
fn stage_of(task: &str) -> Option<(&str, usize)> {
    let (job, rest) = task.split_once(", stage ")?;
    Some((job, rest.split_once(',')?.0.parse().ok()?))
}

/// Which stages have had tasks of jobs other than these, and on which executors, in order.
fn stages_without(cluster: &Cluster, jobs: &HashSet<String>) -> Result<Vec<(usize, usize)>> {
    let mut found = vec![];
    for executor in 0..2 {
        let tasks = cluster.tasks_of(executor)?;
        let stages = tasks.iter().filter_map(|task| stage_of(task)).filter(|(job, _)| !jobs.contains(*job));
        found.extend(stages.map(|(_, stage)| (stage, executor)));
    }
    found.sort_unstable();
    Ok(found)
}

/// A query of which an executor is killed.
struct Killing {
    query: &'static str,
    is_adaptive: bool,
    policy: &'static str,
    /// Which of the query's stages runs then: 0 is the first one.
    stage: usize,
    memory: Option<&'static str>,
}

/// What has become of a query: its rows, or the error. None if it has no such stage.
type Outcome = Option<Result<Vec<String>>>;

impl Killing {
    /// Runs the query once, to see its stages. Then runs it at most `times` times, and kills an executor as soon as it
    /// has begun with a task of the stage. Expects that nothing is left on disk but files of the shuffle, and what
    /// `DataFusion` has spilled.
    async fn run(&self, data: &Data, settings: QuernConfig, times: usize) -> Result<Outcome> {
        let mut cluster = start_with(1, self.memory, self.policy)?;
        let config = SessionConfig::new_with_ballista().with_target_partitions(6);
        let config = config.with_ballista_adaptive_query_planner(self.is_adaptive);
        let client = client_of(&cluster, data, settings, config).await?;
        assert_eq!(rows_of(&client, self.query).await?, expected(data, self.query).await?);
        let mut stages: Vec<_> =
            stages_without(&cluster, &HashSet::new())?.into_iter().map(|(stage, _)| stage).collect();
        stages.dedup();
        let Some(&stage) = stages.get(self.stage) else { return Ok(None) };
        let tasks = [cluster.tasks_of(0)?, cluster.tasks_of(1)?].concat();
        let jobs = tasks.iter().filter_map(|task| stage_of(task)).map(|(job, _)| job.to_owned()).collect();

        let frame = client.sql(self.query).await?;
        let running = tokio::spawn(collect_again(frame, times));
        let killed = loop {
            let has_ended = running.is_finished();
            let found = stages_without(&cluster, &jobs)?.into_iter().find(|(number, _)| *number == stage);
            if let Some((_, executor)) = found {
                break executor;
            }
            if has_ended {
                return Err(DataFusionError::Execution(format!("no task of stage {stage}")));
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        cluster.signal(killed, "KILL")?;
        // A table of outcomes needs a limit; a test has that of whoever runs it.
        let limit = if times == 1 { Duration::from_mins(1) } else { Duration::MAX };
        let rows = match tokio::time::timeout(limit, running).await {
            Ok(ended) => ended.map_err(|error| DataFusionError::Execution(error.to_string()))?,
            Err(_) => Err(DataFusionError::Execution("no answer in 60 seconds".to_owned())),
        };
        // Names of `DataFusion`'s spilled files; Quern's have none.
        let mut left = files_below(&cluster.temporary_folder())?;
        left.retain(|name| !name.starts_with(".tmp"));
        assert_eq!(left, HashSet::new());
        // Tasks of a job that was ended may take a moment to stop.
        while !strange_files(&cluster, 1 - killed)?.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut strange = strange_files(&cluster, killed)?;
        strange.retain(|name| !name.starts_with(".tmp"));
        assert_eq!(strange, Vec::<String>::new());
        Ok(Some(rows.and_then(|rows| sorted_rows(&rows))))
    }
}

async fn assert_survived(name: &str, killings: &[Killing]) -> Result<()> {
    let data = Data::write(name).await?;
    for killing in killings {
        let what = format!("adaptive {}, {}, stage {}", killing.is_adaptive, killing.policy, killing.stage);
        let settings = if killing.memory.is_some() { QuernConfig::default() } else { forced() };
        let rows = killing.run(&data, settings, 3).await?.transpose()?;
        assert_eq!(rows, Some(expected(&data, killing.query).await?), "{what}");
    }
    Ok(())
}

// Under `push-staged`, cores of the executors that are left stay taken (see `quern_ballista`, `lost`): a query that is
// sent again can wait for ever.

#[tokio::test(flavor = "multi_thread")]
async fn killed_executors_leave_answers_equal_with_the_adaptive_planner() -> Result<()> {
    let killing = |stage| Killing { query: LONG, is_adaptive: true, policy: "pull-staged", stage, memory: None };
    assert_survived("killed-adaptive", &[killing(0), killing(1), killing(2)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_executors_leave_answers_equal_with_the_static_planner() -> Result<()> {
    let killing = |stage| Killing { query: DEEP, is_adaptive: false, policy: "pull-staged", stage, memory: None };
    let spilling = Killing { memory: Some("64MiB"), ..killing(3) };
    assert_survived("killed-static", &[killing(0), spilling, killing(5)]).await
}

/// Prints what becomes of a query that is sent once, by planner, policy and the stage in which an executor is killed,
/// with Quern and without.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes 20 minutes, and prints what Ballista 55 recovers from"]
async fn killed_executors() -> Result<()> {
    let data = Data::write("killed").await?;
    let (push, pull) = ("push-staged", "pull-staged");
    for (is_adaptive, policy) in [(true, push), (true, pull), (false, push), (false, pull)] {
        for (name, query, stage, enabled) in ["long", "deep"]
            .into_iter()
            .zip([LONG, DEEP])
            .flat_map(|(name, query)| (0..6).map(move |stage| (name, query, stage)))
            .flat_map(|(name, query, stage)| [false, true].map(|enabled| (name, query, stage, enabled)))
        {
            let mut settings = forced();
            settings.enabled = enabled;
            let killing = Killing { query, is_adaptive, policy, stage, memory: None };
            let Some(rows) = killing.run(&data, settings, 1).await? else { continue };
            let outcome = match rows {
                Err(error) => error.to_string().chars().take(120).collect(),
                Ok(rows) if rows == expected(&data, query).await? => "equal rows".to_owned(),
                Ok(_) => "OTHER ROWS".to_owned(),
            };
            println!("adaptive {is_adaptive}, {policy}, query {name}, stage {stage}, Quern {enabled}: {outcome}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_executor_is_waited_for() -> Result<()> {
    let data = Data::write("slow").await?;
    let mut cluster = start(1, None)?;
    let quern = client(&cluster, &data, 4, forced()).await?;
    let frame = quern.sql(LONG).await?;
    let running = tokio::spawn(frame.collect());
    wait_for_task(&cluster, 0, 0).await?;
    cluster.signal(0, "STOP")?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.signal(0, "CONT")?;
    let rows = running.await.map_err(|error| DataFusionError::Execution(error.to_string()))??;
    assert_eq!(sorted_rows(&rows)?, expected(&data, LONG).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_at_once() -> Result<()> {
    let data = Data::write("clients").await?;
    let cluster = start(2, None)?;
    let (first, second) = (client(&cluster, &data, 2, forced()).await?, client(&cluster, &data, 3, forced()).await?);
    let ask = async |context: &SessionContext, skipped: usize| -> Result<()> {
        for query in QUERIES.iter().skip(skipped).step_by(2) {
            assert_eq!(rows_of(context, query).await?, expected(&data, query).await?, "{query}");
        }
        Ok(())
    };
    let (one, other) = tokio::join!(ask(&first, 0), ask(&second, 1));
    one.and(other)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_query_leaves_the_cluster_usable() -> Result<()> {
    let data = Data::write("cancelled").await?;
    let cluster = start(1, None)?;
    let quern = client(&cluster, &data, 4, forced()).await?;
    let frame = quern.sql(LONG).await?;
    let running = tokio::spawn(frame.collect());
    wait_for_task(&cluster, 0, 0).await?;
    running.abort();
    assert_eq!(rows_of(&quern, QUERIES[2]).await?, expected(&data, QUERIES[2]).await?);
    Ok(())
}

/// Files of a folder and those below it, by their names. Executors may remove folders at the same time.
fn files_below(folder: &Path) -> Result<HashSet<String>> {
    let mut found = HashSet::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files_below(&entry.path())?);
        } else {
            found.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

/// Files in the working folder of an executor that are none of the shuffle.
fn strange_files(cluster: &Cluster, executor: usize) -> Result<Vec<String>> {
    let files = files_below(&cluster.work_folder(executor))?;
    Ok(files.into_iter().filter(|name| !["arrow", "data", "index"].iter().any(|kind| name.contains(kind))).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn small_memory_pools_spill_and_leave_no_files() -> Result<()> {
    let data = Data::write("memory").await?;
    let cluster = start(1, Some("64MiB"))?;
    let quern = client(&cluster, &data, 2, QuernConfig::default()).await?;
    for query in [QUERIES[1], QUERIES[2], QUERIES[8], "select * from lines order by l_price, l_order, l_number"] {
        assert_eq!(rows_of(&quern, query).await?, expected(&data, query).await?, "{query}");
    }
    for executor in 0..2 {
        assert_eq!(strange_files(&cluster, executor)?, Vec::<String>::new());
    }
    Ok(())
}
