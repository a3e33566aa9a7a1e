// SPDX-License-Identifier: Apache-2.0
//! One run of a fragment.
//!
//! The first partition that is polled starts it. Builds run as soon as the tables that their rows probe are there, each
//! by a task for every partition of its source. Then the rows of the chain run the same way, up to the job that takes
//! them. When that is done, each partition of the node reads its share of the result. Where rows go to the parent, each
//! partition sends those of one partition of the source through the chain.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::common::runtime::JoinSet;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::{Count, Time};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream};
use futures::future::{Either, select, try_join, try_join_all};
use futures::{FutureExt, StreamExt};
use quern::{Input, Job, Output, OutputOptions, Pipeline, PipelineOutput, Port, Work};
use tokio::sync::Notify;
use tokio::task::JoinError;

use crate::account::{FragmentMemory, LEAST_BYTES};
use crate::ahead::ReadAhead;
use crate::dynamic;
use crate::foreign::{FeedExec, Taker, handed_over, without_functions};
use crate::fragment::{Chain, Fragment, Sink, SinkColumns, Step};
use crate::metrics::{self, RunMetrics, timed};
use crate::results;
use crate::shared::SharedRows;
use crate::types::ColumnType;

/// Whose failure it is: a fragment that fails in Quern may run again as the plan that it has replaced.
#[derive(Debug)]
pub(crate) enum Failure {
    Quern(quern::Error),
    /// Shared, as every partition reports it.
    Host(Arc<DataFusionError>),
}

impl From<quern::Error> for Failure {
    fn from(error: quern::Error) -> Self {
        Self::Quern(error)
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::Host(Arc::new(error))
    }
}

impl From<Failure> for DataFusionError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Quern(error) => Self::External(Box::new(error)),
            Failure::Host(error) => Self::Shared(error),
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

/// What a run works on.
pub(crate) struct Run {
    pub(crate) fragment: Arc<Fragment>,
    pub(crate) children: Vec<Arc<dyn ExecutionPlan>>,
    pub(crate) context: Arc<TaskContext>,
    /// Sources are polled where the node is, and not by tasks: they belong to another copy of the runtime.
    has_foreign_sources: bool,
    memory: FragmentMemory,
    metrics: RunMetrics,
    /// Of the last source, where it may be read ahead.
    ahead: Option<Arc<ReadAhead>>,
}

/// A run whose builds are done, and whose rows are in the job that takes them, where there is one.
pub(crate) struct Ready {
    run: Arc<Run>,
    builds: Vec<Option<Job>>,
    pub(crate) sink: Option<Job>,
    /// The source of the chain.
    source: Arc<dyn ExecutionPlan>,
    /// The jobs of the chain's steps.
    steps: Vec<Job>,
    /// Of partitions that send rows to the parent: those that have not ended.
    open_partitions: AtomicUsize,
}

/// The jobs of a chain's steps. Those of filters and maps are made here.
fn step_jobs(chain: &Chain, builds: &[Option<Job>]) -> Outcome<Vec<Job>> {
    chain
        .steps
        .iter()
        .map(|step| match step {
            Step::Kernel { kernel, .. } => Ok(Job::new(&kernel.kernel)?),
            Step::Probe { build, .. } | Step::Reduction { build, .. } => Ok(table(builds, *build)?.clone()),
        })
        .collect()
}

fn table(builds: &[Option<Job>], number: usize) -> Outcome<&Job> {
    let missing = || DataFusionError::Internal(format!("table {number} that is not built"));
    Ok(builds.get(number).and_then(Option::as_ref).ok_or_else(missing)?)
}

/// What a join has left, in batches that are small beside its memory.
fn unmatched(table: &Job) -> Outcome<Output> {
    const BATCH_ROWS: u64 = 1024;
    Ok(table.output_with(Port::Unmatched, &OutputOptions { batch_rows: BATCH_ROWS, ..OutputOptions::default() })?)
}

fn bind(job: &Job, port: Port, columns: &SinkColumns) -> Outcome<()> {
    let all: Vec<_> = (0..columns.schema.fields().len()).map(Some).collect();
    let (keys, payload) = all.split_at(columns.num_keys);
    Ok(job.bind(port, &columns.schema, keys, payload)?)
}

/// The types of the columns in front of a step.
fn types_before(chain: &Chain, step: usize) -> &[ColumnType] {
    chain.steps[..step]
        .iter()
        .rev()
        .find_map(|step| match step {
            Step::Probe { types_behind, .. } => Some(types_behind.as_slice()),
            Step::Kernel { .. } | Step::Reduction { .. } => None,
        })
        .unwrap_or(&chain.source_types)
}

/// The pipeline of the steps from one of them to another, which begins with the source or behind a probe.
fn pipeline(chain: &Chain, jobs: &[Job], steps: std::ops::Range<usize>) -> Pipeline {
    let types: Vec<_> = types_before(chain, steps.start).iter().filter_map(ColumnType::item).collect();
    let mut pipeline = Pipeline::new(&types.join(","));
    for (step, job) in chain.steps[steps.clone()].iter().zip(&jobs[steps]) {
        match step {
            Step::Kernel { keys, .. } => pipeline.through(job, keys, &[]),
            Step::Probe { keys, payload, .. } => pipeline.through(job, keys, payload),
            Step::Reduction { keys, .. } => pipeline.reduced(job, keys),
        };
    }
    pipeline
}

/// Does a job's work together with other tasks. One that finds all work taken waits until another one has done a piece.
async fn work_with_others(job: Job, compute: Time, pieces_done: Arc<Notify>) -> Outcome<()> {
    loop {
        let mut next_piece = pin!(pieces_done.notified());
        next_piece.as_mut().enable(); // from here on, so that none is missed
        match timed(&compute, || job.work())? {
            Work::Busy => next_piece.await,
            Work::More => {
                pieces_done.notify_waiters();
                tokio::task::yield_now().await;
            }
            Work::Done => {
                pieces_done.notify_waiters();
                return Ok(());
            }
        }
    }
}

fn threads_of(context: &TaskContext) -> usize {
    context.session_config().target_partitions().max(1)
}

/// What a task has answered.
fn answer_of(ended: Result<Outcome<()>, JoinError>) -> Outcome<()> {
    ended.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
}

/// Waits for all tasks. The first failure ends the others.
async fn join_all(mut tasks: JoinSet<Outcome<()>>) -> Outcome<()> {
    while let Some(ended) = tasks.join_next().await {
        answer_of(ended)?;
    }
    Ok(())
}

/// A batch whose columns are those that the plan of the source says, with their units and digits, which kernels do not
/// look at.
pub(crate) fn as_planned(batch: RecordBatch, types: &[ColumnType]) -> Outcome<RecordBatch> {
    let wrong = batch.columns().iter().zip(types).find(|(column, planned)| *column.data_type() != planned.data_type);
    match wrong {
        None if batch.num_columns() == types.len() => Ok(batch),
        None => Err(quern::Error::InvalidArgument(format!(
            "batch of {} columns; accepted: the {} of its plan",
            batch.num_columns(),
            types.len()
        ))
        .into()),
        Some((column, planned)) => Err(quern::Error::InvalidArgument(format!(
            "column of type {}; accepted: {}, as its plan says",
            column.data_type(),
            planned.data_type
        ))
        .into()),
    }
}

/// Sends the rows of a partition into a job.
async fn append_all(
    mut rows: SendableRecordBatchStream,
    mut input: Input,
    types: Arc<[ColumnType]>,
    compute: Time,
    count: Count,
) -> Outcome<()> {
    while let Some(batch) = rows.next().await {
        let batch = as_planned(batch?, &types)?;
        count.add(batch.num_rows());
        timed(&compute, || input.append(batch))?;
    }
    Ok(timed(&compute, || input.finish())?)
}

/// Where the rows of a chain go.
struct Target<'a> {
    job: &'a Job,
    port: Port,
    keys: &'a [u32],
    payload: &'a [u32],
}

impl Run {
    pub(crate) fn new(
        fragment: Arc<Fragment>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        context: Arc<TaskContext>,
        metrics: RunMetrics,
        has_foreign_sources: bool,
    ) -> Arc<Self> {
        let memory = FragmentMemory::of(&context);
        let context = if has_foreign_sources { without_functions(&context, None) } else { context };
        let may_read_ahead = !fragment.builds.is_empty() && !has_foreign_sources && !memory.is_limited();
        let last = &children[fragment.chain.source];
        let ahead = may_read_ahead.then(|| ReadAhead::of(last, &context, threads_of(&context))).flatten().map(Arc::new);
        Arc::new(Self { fragment, children, context, has_foreign_sources, memory, metrics, ahead })
    }

    /// Does everything up to the first row of the result.
    pub(crate) async fn start(self: Arc<Self>) -> Outcome<Ready> {
        let mut builds: Vec<Option<Job>> = vec![None; self.fragment.builds.len()];
        loop {
            // All those whose own probes have their tables.
            let mut next: Vec<_> = (0..builds.len())
                .filter(|&number| builds[number].is_none() && self.fragment.builds[number].chain.can_run(&builds))
                .collect();
            if next.is_empty() {
                break;
            }
            // What the small tables leave of a pool, the large ones share: one after the other.
            if self.memory.is_limited() {
                next.sort_by_key(|&number| self.table_bytes(number));
                next.truncate(1);
            }
            let made = try_join_all(next.iter().map(|&number| self.build(number, &builds))).await?;
            for (number, job) in next.into_iter().zip(made) {
                builds[number] = Some(job);
            }
        }
        let chain = &self.fragment.chain;
        let steps = step_jobs(chain, &builds)?;
        let source = self.last_source(&builds)?;
        let sink = match &self.fragment.sink {
            Sink::Groups(sink, _) | Sink::Sorted(sink, _) => {
                let job = Job::with(&sink.kernel.kernel, &self.memory.job_options(0))?;
                bind(&job, Port::Rows, &sink.columns)?;
                let target = Target { job: &job, port: Port::Rows, keys: &sink.keys, payload: &sink.payload };
                self.fill(chain, &source, &builds, &target, &self.metrics.input_rows).await?;
                Some(job)
            }
            Sink::Rows { .. } => None,
        };
        let partitions = source.output_partitioning().partition_count();
        // The tables have done their work where all rows are in the job that takes them.
        let (builds, steps) = if sink.is_some() { (vec![], vec![]) } else { (builds, steps) };
        Ok(Ready { run: self, builds, sink, source, steps, open_partitions: AtomicUsize::new(partitions) })
    }

    /// The source of the last rows. It begins anew where it has been read ahead and would read less now.
    fn last_source(&self, builds: &[Option<Job>]) -> Outcome<Arc<dyn ExecutionPlan>> {
        let source = &self.children[self.fragment.chain.source];
        Ok(match &self.ahead {
            Some(ahead) if ahead.end() && self.narrows(source, builds)? => ahead.begin_anew()?,
            _ => Arc::clone(source),
        })
    }

    /// Whether the keys of a table let a scan of the last source read less.
    fn narrows(&self, source: &Arc<dyn ExecutionPlan>, builds: &[Option<Job>]) -> Outcome<bool> {
        let chain = &self.fragment.chain;
        let known = StatisticsContext::new().compute(source.as_ref(), &StatisticsArgs::new()).unwrap_or_default();
        for (number, step) in chain.steps.iter().enumerate() {
            let Step::Probe { build, keys, .. } = step else { continue };
            let columns: Vec<_> = keys.iter().map(|&key| chain.source_column(number, key)).collect();
            let has_filter = self.fragment.builds[*build].dynamic_filter.is_some();
            if has_filter && dynamic::narrows(table(builds, *build)?, &columns, &known)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// About what a table takes while it is built, if no step takes rows away, as far as statistics tell.
    fn table_bytes(&self, number: usize) -> u64 {
        const OF_STRINGS: usize = 40;
        let build = &self.fragment.builds[number];
        let source = self.children[build.chain.source].as_ref();
        let statistics = StatisticsContext::new().compute(source, &StatisticsArgs::new()).ok();
        let rows = statistics.and_then(|known| known.num_rows.get_value().copied()).unwrap_or(usize::MAX);
        let widths = build.columns.schema.fields().iter().map(|field| field.data_type().primitive_width());
        let row_bytes: usize = widths.map(|width| width.unwrap_or(OF_STRINGS)).sum();
        rows.saturating_mul(2 * row_bytes) as u64
    }

    /// What the tables that are not there yet, but for one, and the job behind them need at least.
    fn later_bytes(&self, number: usize, builds: &[Option<Job>]) -> u64 {
        if !self.memory.is_limited() {
            return 0;
        }
        let later = (0..builds.len()).filter(|&other| other != number && builds[other].is_none());
        let of_tables: u64 = later.map(|other| self.table_bytes(other).min(LEAST_BYTES)).sum();
        of_tables + if matches!(self.fragment.sink, Sink::Rows { .. }) { 0 } else { LEAST_BYTES }
    }

    /// Makes the table of a join.
    async fn build(&self, number: usize, builds: &[Option<Job>]) -> Outcome<Job> {
        let build = &self.fragment.builds[number];
        let job = Job::with(&build.kernel.kernel, &self.memory.job_options(self.later_bytes(number, builds)))?;
        bind(&job, Port::Build, &build.columns)?;
        bind(&job, Port::Probe, &build.probe_columns)?;
        let target = Target { job: &job, port: Port::Build, keys: &build.keys, payload: &build.payload };
        self.fill(&build.chain, &self.children[build.chain.source], builds, &target, &Count::new()).await?;
        self.metrics.build_input_rows.add(metrics::saturated(job.stats().input_rows));
        if let Some(filter) = &build.dynamic_filter {
            dynamic::publish(filter, &job)?;
        }
        Ok(job)
    }

    /// Sends all rows of a chain into a job, and does the job's work. Rows of the source are counted.
    async fn fill(
        &self,
        chain: &Chain,
        source: &Arc<dyn ExecutionPlan>,
        builds: &[Option<Job>],
        target: &Target<'_>,
        count: &Count,
    ) -> Outcome<()> {
        let jobs = step_jobs(chain, builds)?;
        let whole = pipeline(chain, &jobs, 0..jobs.len());
        let feed = FeedExec::below(source).filter(|_| self.has_foreign_sources);
        let partitions = feed.as_ref().unwrap_or(source).output_partitioning().partition_count();
        let types: Arc<[ColumnType]> = chain.source_types.as_slice().into();
        let taker = || -> Outcome<Taker> {
            let input = whole.into_job(target.job, target.port, target.keys, target.payload)?;
            let (types, compute, count) = (Arc::clone(&types), self.metrics.compute.clone(), count.clone());
            Ok(Box::new(move |rows| append_all(rows, input, types, compute, count).boxed()))
        };
        if self.has_foreign_sources {
            let takers = (0..partitions).map(|_| taker()).collect::<Outcome<_>>()?;
            match feed {
                Some(_) => FeedExec::read(source, Arc::clone(&self.context), takers).await?,
                None => self.read_foreign(source, takers).await?,
            }
        } else {
            self.read(source, taker).await?;
        }
        self.fill_rest(chain, builds, &jobs, target).await?;
        self.work(target.job).await
    }

    /// The rows of a partition of a source, those that have been read ahead first.
    async fn rows_of(
        &self,
        source: &Arc<dyn ExecutionPlan>,
        partition: usize,
    ) -> datafusion::common::Result<SendableRecordBatchStream> {
        if let Some(ahead) = self.ahead.as_ref().filter(|ahead| ahead.is_of(source))
            && let Some(rows) = ahead.take(partition).await?
        {
            return Ok(rows);
        }
        source.execute(partition, Arc::clone(&self.context))
    }

    /// Reads the partitions of a source, by a task each; long ones are also read by threads that are idle.
    async fn read(&self, source: &Arc<dyn ExecutionPlan>, taker: impl Fn() -> Outcome<Taker>) -> Outcome<()> {
        let partitions = 0..source.output_partitioning().partition_count();
        let streams = try_join_all(partitions.map(|partition| self.rows_of(source, partition))).await?;
        let ahead = self.ahead.clone().filter(|ahead| !ahead.is_of(source));
        if let Some(ahead) = &ahead {
            ahead.partitions_begin(streams.len());
        }
        let shared = SharedRows::new(source.schema(), streams, ahead);
        let mut tasks = JoinSet::new();
        for partition in 0..shared.num_partitions() {
            tasks.spawn(taker()?(shared.rows(partition)));
        }
        // An input takes memory, of which a pool may have little.
        let most_tasks = if self.memory.is_limited() { 0 } else { self.threads() };
        loop {
            match select(pin!(tasks.join_next()), pin!(shared.has_long())).await {
                Either::Left((None, _)) => return Ok(()),
                Either::Left((Some(ended), _)) => answer_of(ended)?,
                Either::Right(_) => {}
            }
            while tasks.len() < most_tasks
                && let Some(partition) = shared.long_partition()
            {
                tasks.spawn(taker()?(shared.rows(partition)));
            }
        }
    }

    /// Reads the partitions of a source of another copy of `DataFusion`, by a task each.
    async fn read_foreign(&self, source: &Arc<dyn ExecutionPlan>, takers: Vec<Taker>) -> Outcome<()> {
        let mut tasks = JoinSet::new();
        let mut handed_over_rows = vec![];
        for (partition, taker) in takers.into_iter().enumerate() {
            let (rows, handing_over) = handed_over(source.execute(partition, Arc::clone(&self.context))?);
            handed_over_rows.push(async { handing_over.await.map_err(Failure::from) });
            tasks.spawn(taker(rows));
        }
        try_join(try_join_all(handed_over_rows), join_all(tasks)).await?;
        Ok(())
    }

    /// Sends what the joins of a chain have left when all probing is done: one after the other, as a later one is
    /// probed with what an earlier one has left.
    async fn fill_rest(&self, chain: &Chain, builds: &[Option<Job>], jobs: &[Job], target: &Target<'_>) -> Outcome<()> {
        for (number, step) in chain.steps.iter().enumerate() {
            let Step::Probe { build, .. } = step else { continue };
            let table = table(builds, *build)?;
            if !self.has_rest(*build, table) {
                continue;
            }
            let mut rest = pipeline(chain, jobs, number + 1..jobs.len());
            rest.copy_bytes(true); // the rows are the join's memory, which it needs for the next ones
            let mut tasks = JoinSet::new();
            for _ in 0..self.threads() {
                let mut output = unmatched(table)?;
                let mut input = rest.into_job(target.job, target.port, target.keys, target.payload)?;
                let compute = self.metrics.compute.clone();
                tasks.spawn(async move {
                    let mut pass_on = || output.next().map(|batch| input.append(batch?)).transpose();
                    while timed(&compute, &mut pass_on)?.is_some() {
                        tokio::task::yield_now().await;
                    }
                    Ok(timed(&compute, || input.finish())?)
                });
            }
            join_all(tasks).await?;
        }
        Ok(())
    }

    /// Whether a join may have rows that come out of its table by themselves.
    fn has_rest(&self, build: usize, job: &Job) -> bool {
        self.fragment.builds[build].kind.has_unmatched() || (self.memory.spills() && job.stats().spilled_rows != 0)
    }

    fn threads(&self) -> usize {
        threads_of(&self.context)
    }

    /// The work between the last row and the first result, by as many tasks as there are partitions.
    async fn work(&self, job: &Job) -> Outcome<()> {
        if timed(&self.metrics.compute, || job.work())? == Work::Done {
            return Ok(());
        }
        let mut tasks = JoinSet::new();
        let pieces_done = Arc::new(Notify::new());
        for _ in 0..self.threads() {
            let (compute, pieces_done) = (self.metrics.compute.clone(), Arc::clone(&pieces_done));
            tasks.spawn(work_with_others(job.clone(), compute, pieces_done));
        }
        join_all(tasks).await
    }
}

impl Ready {
    /// Begins a partition whose rows go to the parent.
    pub(crate) async fn rows_of(&self, partition: usize) -> Outcome<(SendableRecordBatchStream, PipelineOutput)> {
        let rows = self.run.rows_of(&self.source, partition).await?;
        Ok((rows, self.output_from(0)?))
    }

    /// Counts rows of a partition's source.
    pub(crate) fn count(&self, rows: usize) {
        self.run.metrics.input_rows.add(rows);
    }

    /// A batch for the parent, which may keep it while the jobs need memory.
    pub(crate) fn handed_over(&self, rows: RecordBatch) -> datafusion::common::Result<RecordBatch> {
        if self.run.memory.is_limited() { results::detached(&rows) } else { Ok(rows) }
    }

    /// The steps from one on, up to the last one, a probe.
    fn output_from(&self, first: usize) -> Outcome<PipelineOutput> {
        let chain = &self.run.fragment.chain;
        let last = chain.steps.len() - 1;
        let Step::Probe { keys, payload, .. } = &chain.steps[last] else {
            return Err(DataFusionError::Internal("rows without a probe at the end".to_owned()).into());
        };
        let batch_rows = self.run.context.session_config().batch_size() as u64;
        Ok(pipeline(chain, &self.steps, first..last).into_output(&self.steps[last], keys, payload, batch_rows)?)
    }

    /// Ends a partition whose rows go to the parent. The last one gets what the joins have left.
    pub(crate) fn rest(&self) -> Rest<'_> {
        let is_last = self.open_partitions.fetch_sub(1, Ordering::AcqRel) == 1;
        Rest { ready: self, step: if is_last { 0 } else { self.steps.len() }, left: None }
    }
}

/// What the joins of a run have left when all probing is done: one after the other, as a later one is probed with what
/// an earlier one has left.
pub(crate) struct Rest<'a> {
    ready: &'a Ready,
    /// The step whose join is read, or the next one.
    step: usize,
    /// What it has left, and the steps behind it.
    left: Option<(Output, Option<PipelineOutput>)>,
}

impl Rest<'_> {
    /// The results of some rows, perhaps none; `None` when there are no more.
    pub(crate) fn next(&mut self) -> Outcome<Option<Vec<RecordBatch>>> {
        let Ready { run, builds, .. } = self.ready;
        let steps = &run.fragment.chain.steps;
        while let Some(step) = steps.get(self.step) {
            if let Some((left, behind)) = &mut self.left {
                if let Some(rows) = left.next().transpose()? {
                    return Ok(Some(match behind {
                        Some(behind) => behind.push(rows)?,
                        None => vec![rows],
                    }));
                }
                if let Some((_, Some(behind))) = self.left.take() {
                    behind.finish()?;
                }
            } else if let Step::Probe { build, .. } = step
                && let table = table(builds, *build)?
                && run.has_rest(*build, table)
            {
                let is_last = self.step + 1 == steps.len();
                let behind = if is_last { None } else { Some(self.ready.output_from(self.step + 1)?) };
                self.left = Some((unmatched(table)?, behind));
                continue;
            }
            self.step += 1;
        }
        Ok(None)
    }
}
