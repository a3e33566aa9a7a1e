// SPDX-License-Identifier: Apache-2.0
//! The node that runs a fragment.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use async_stream::try_stream;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions, reset_plan_states};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time,
};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};
use quern::{OutputOptions, Port, Rows};

use crate::config::QuernConfig;
use crate::foreign::FeedExec;
use crate::fragment::{Fragment, OutputColumn, Sink};
use crate::metrics::{self, RunMetrics, timed};
use crate::results;
use crate::run::{Failure, Outcome, Ready, Run, as_planned};

/// Runs a fragment of a plan as kernels of Quern. Its children are the plans from which the fragment's rows come.
#[derive(Debug)]
pub struct QuernExec {
    fragment: Arc<Fragment>,
    /// What the fragment has replaced, and what runs where the fragment cannot.
    original: Arc<dyn ExecutionPlan>,
    /// The plans below `original` in place of which the children are.
    sources: Vec<Arc<dyn ExecutionPlan>>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    has_foreign_sources: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// Those of the original, once they have been asked for.
    statistics: OnceLock<Arc<Statistics>>,
    state: Mutex<Option<Running>>,
}

/// A run, and the partitions that have not been given a stream of it. A partition that is executed again begins another
/// run. When all have been given one, the streams alone keep the run.
#[derive(Debug)]
struct Running {
    start: Shared<Start>,
    waits: Vec<bool>,
}

/// The run that all partitions share. A failure is taken by one of them; the others say that it failed.
type Start = BoxFuture<'static, Arc<Started>>;

struct Started {
    ready: std::result::Result<Ready, Arc<Failure>>,
}

impl QuernExec {
    pub(crate) fn new(
        fragment: Arc<Fragment>,
        original: Arc<dyn ExecutionPlan>,
        sources: Vec<Arc<dyn ExecutionPlan>>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Self {
        let (partitions, emission) = match &fragment.sink {
            // Sorted rows come out of the first one.
            Sink::Groups(..) | Sink::Sorted(..) => {
                (original.output_partitioning().partition_count(), EmissionType::Final)
            }
            Sink::Rows { .. } => {
                (children[fragment.chain.source].output_partitioning().partition_count(), EmissionType::Incremental)
            }
        };
        // What is true of all rows is true of them in any partition. What each partition has for itself is not: rows
        // lie in other partitions than the original's. Orders are those of sorts, which have one.
        let mut equivalences = original.equivalence_properties().clone();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions),
            emission,
            Boundedness::Bounded,
        );
        Self {
            fragment,
            original,
            sources,
            children,
            has_foreign_sources: false,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            statistics: OnceLock::new(),
            state: Mutex::new(None),
        }
    }

    /// The same node over plans of another copy of `DataFusion` in this process, whose streams have to be polled by
    /// whoever polls the node: its tasks are not those of this copy's runtime.
    pub(crate) fn over_foreign_sources(self, sources: &[Arc<dyn ExecutionPlan>]) -> Self {
        let mut children = self.children;
        for (child, source) in children.iter_mut().zip(sources) {
            if FeedExec::below(source).is_some() {
                *child = Arc::clone(source);
            }
        }
        Self { has_foreign_sources: true, children, ..self }
    }

    /// The plan that the fragment has replaced.
    #[must_use]
    pub fn original(&self) -> &Arc<dyn ExecutionPlan> {
        &self.original
    }

    /// The statistics of the plan that the fragment has replaced.
    fn statistics_of_original(&self) -> Result<Arc<Statistics>> {
        if let Some(statistics) = self.statistics.get() {
            return Ok(Arc::clone(statistics));
        }
        let computed = StatisticsContext::new().compute(self.original.as_ref(), &StatisticsArgs::new())?;
        // States of a group come out once here, and once for every partition there.
        let states = self
            .original
            .downcast_ref::<AggregateExec>()
            .is_some_and(|aggregate| aggregate.mode() == &AggregateMode::Partial);
        let statistics = if states { Arc::new(Statistics::clone(&computed).to_inexact()) } else { computed };
        Ok(Arc::clone(self.statistics.get_or_init(|| statistics)))
    }

    /// The plans below the replaced one from which the fragment's rows came, in their order there. The children
    /// are in place of them.
    #[must_use]
    pub fn sources(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.sources
    }

    /// Whether the rows of a child are in a job before the node's first row comes out.
    pub(crate) fn collects(&self, child: usize) -> bool {
        !matches!(self.fragment.sink, Sink::Rows { .. }) || self.fragment.chain.source != child
    }

    /// The kinds of the fragment's operators, for a log: `1 filter, 2 joins, aggregate`.
    #[must_use]
    pub fn operators(&self) -> String {
        self.fragment.operators()
    }

    /// The run of this execution, which is started when the first partition is polled.
    fn start(&self, partition: usize, context: &Arc<TaskContext>, compute: &Time) -> Shared<Start> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |running: &Running| running.waits.get(partition).copied().unwrap_or(false);
        let mut running = state.take().filter(waits).unwrap_or_else(|| {
            let metrics = RunMetrics::new(&self.metrics, partition, compute);
            let (fragment, children) = (Arc::clone(&self.fragment), self.children.clone());
            let run = Run::new(fragment, children, Arc::clone(context), metrics, self.has_foreign_sources);
            let start = async move { Arc::new(Started { ready: run.start().await.map_err(Arc::new) }) };
            let partitions = self.properties.output_partitioning().partition_count();
            Running { start: start.boxed().shared(), waits: vec![true; partitions] }
        });
        if let Some(waits) = running.waits.get_mut(partition) {
            *waits = false;
        }
        let start = running.start.clone();
        if running.waits.contains(&true) {
            *state = Some(running);
        }
        start
    }
}

impl DisplayAs for QuernExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuernExec: {}", self.fragment)
    }
}

impl ExecutionPlan for QuernExec {
    fn name(&self) -> &'static str {
        "QuernExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn schema(&self) -> SchemaRef {
        self.original.schema()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![true; self.children.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.children.len() {
            return Err(DataFusionError::Internal(format!(
                "QuernExec with {} children; accepted: {}",
                children.len(),
                self.children.len()
            )));
        }
        let (fragment, original) = (Arc::clone(&self.fragment), Arc::clone(&self.original));
        let node = Self::new(fragment, original, self.sources.clone(), children);
        Ok(Arc::new(Self { has_foreign_sources: self.has_foreign_sources, ..node }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(
            children,
            ReplaceChildrenOptions::new(datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute),
        )
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let partitions = self.properties.output_partitioning().partition_count();
        if args.partition().is_some() && partitions != 1 {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        self.statistics_of_original()
    }

    fn fetch(&self) -> Option<usize> {
        if let Sink::Rows { fetch } = &self.fragment.sink { *fetch } else { None }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let started = self.start(partition, &context, baseline.elapsed_compute());
        let part = Part {
            partition,
            schema: self.schema(),
            is_whole: self.properties.output_partitioning().partition_count() == 1,
            fragment: Arc::clone(&self.fragment),
            original: Arc::clone(&self.original),
            has_foreign_sources: self.has_foreign_sources,
            fallbacks: MetricBuilder::new(&self.metrics).counter("fallbacks", partition),
            spilled_bytes: MetricBuilder::new(&self.metrics).spilled_bytes(partition),
            baseline,
            context,
        };
        let schema = self.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, part.stream(started))))
    }
}

/// A join gives all results of a piece at once, so that pieces are small where each row has many.
const FIRST_PIECE_ROWS: usize = 1024;
const MOST_PIECE_ROWS: usize = 65_536;

fn next_piece_rows(rows: usize, results: usize) -> usize {
    if results > 4 * MOST_PIECE_ROWS {
        (rows / 4).max(1)
    } else if results < MOST_PIECE_ROWS {
        (rows * 2).min(MOST_PIECE_ROWS)
    } else {
        rows
    }
}

/// The rows of a batch that are wanted, which are then no longer.
fn first_rows(batch: &RecordBatch, wanted: &mut usize) -> RecordBatch {
    let rows = batch.num_rows().min(*wanted);
    *wanted -= rows;
    batch.slice(0, rows)
}

/// One partition of an execution.
struct Part {
    partition: usize,
    schema: SchemaRef,
    fragment: Arc<Fragment>,
    original: Arc<dyn ExecutionPlan>,
    has_foreign_sources: bool,
    context: Arc<TaskContext>,
    /// It is the only partition: no other one has given rows.
    is_whole: bool,
    fallbacks: Count,
    spilled_bytes: Count,
    baseline: BaselineMetrics,
}

impl Part {
    fn stream(self, started: Shared<Start>) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
        try_stream! {
            let started = started.await;
            match &started.ready {
                Err(failure) => {
                    let mut rows = self.fall_back(failure)?;
                    while let Some(batch) = rows.next().await {
                        yield self.counted(batch?);
                    }
                }
                Ok(_) if self.partition != 0 && matches!(self.fragment.sink, Sink::Sorted(..)) => {}
                Ok(ready) => {
                    if let Some(job) = &ready.sink {
                        if self.partition == 0 {
                            self.spilled_bytes.add(metrics::saturated(job.stats().spilled_bytes));
                        }
                        let mut output = self.output(job).map_err(DataFusionError::from)?;
                        let mut next = self.timed(|| output.next_rows());
                        if self.is_whole && let Err(error) = &next {
                            let mut rows = self.fall_back(&Failure::Quern(error.clone()))?;
                            while let Some(batch) = rows.next().await {
                                yield self.counted(batch?);
                            }
                            next = Ok(Rows::Done);
                        }
                        while let Rows::Batch(batch) = next.map_err(Failure::from)? {
                            let batch = self.timed(|| ready.handed_over(self.result(&batch)?))?;
                            yield self.counted(batch);
                            next = self.timed(|| output.next_rows());
                        }
                    } else {
                        let mut wanted = self.fetch().unwrap_or(usize::MAX);
                        let batch_rows = self.context.session_config().batch_size().min(wanted).max(1);
                        let mut whole = BatchCoalescer::new(Arc::clone(&self.schema), batch_rows);
                        let begun = ready.rows_of(self.partition).await;
                        let (mut rows, mut output) = begun.map_err(DataFusionError::from)?;
                        let mut piece_rows = FIRST_PIECE_ROWS;
                        while wanted != 0 && let Some(batch) = rows.next().await {
                            let batch = as_planned(batch?, &self.fragment.chain.source_types)?;
                            ready.count(batch.num_rows());
                            let mut first = 0;
                            while wanted != 0 && first < batch.num_rows() {
                                let piece = batch.slice(first, piece_rows.min(batch.num_rows() - first));
                                first += piece.num_rows();
                                let mut results = 0;
                                for rows in self.timed(|| output.push(piece)).map_err(Failure::from)? {
                                    results += rows.num_rows();
                                    self.timed(|| whole.push_batch(ready.handed_over(self.joined(&rows)?)?))?;
                                }
                                piece_rows = next_piece_rows(piece_rows, results);
                                while wanted != 0 && let Some(batch) = whole.next_completed_batch() {
                                    yield self.counted(first_rows(&batch, &mut wanted));
                                }
                            }
                        }
                        // Where one partition has all that are wanted, no other one has to give the joins' rest.
                        if wanted != 0 {
                            output.finish().map_err(Failure::from)?;
                            let mut rest = ready.rest();
                            while wanted != 0 {
                                let results = self.timed(|| rest.next()).map_err(DataFusionError::from)?;
                                let Some(results) = results else { break };
                                for rows in results {
                                    self.timed(|| whole.push_batch(ready.handed_over(self.joined(&rows)?)?))?;
                                }
                                while wanted != 0 && let Some(batch) = whole.next_completed_batch() {
                                    yield self.counted(first_rows(&batch, &mut wanted));
                                }
                            }
                            whole.finish_buffered_batch()?;
                        }
                        while wanted != 0 && let Some(batch) = whole.next_completed_batch() {
                            yield self.counted(first_rows(&batch, &mut wanted));
                        }
                    }
                }
            }
        }
    }

    /// How many rows the parent wants of this partition.
    fn fetch(&self) -> Option<usize> {
        if let Sink::Rows { fetch } = &self.fragment.sink { *fetch } else { None }
    }

    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        timed(self.baseline.elapsed_compute(), work)
    }

    fn counted(&self, batch: RecordBatch) -> RecordBatch {
        self.baseline.record_output(batch.num_rows());
        batch
    }

    /// This partition of the plan that was replaced, where that is allowed and the failure is Quern's.
    fn fall_back(&self, failure: &Failure) -> Result<SendableRecordBatchStream> {
        let config = self.context.session_config().options().extensions.get::<QuernConfig>();
        // Scans of another copy of DataFusion cannot be told to begin again, and would give no rows.
        match failure {
            Failure::Quern(_) if !self.has_foreign_sources && config.is_none_or(|config| config.fall_back) => {}
            Failure::Quern(error) => return Err(DataFusionError::External(Box::new(error.clone()))),
            Failure::Host(error) => return Err(DataFusionError::Shared(Arc::clone(error))),
        }
        self.fallbacks.add(1);
        if self.partition != 0 {
            return EmptyExec::new(Arc::clone(&self.schema)).execute(0, Arc::clone(&self.context));
        }
        let mut plan = Arc::clone(&self.original);
        if plan.output_partitioning().partition_count() != 1 {
            plan = Arc::new(CoalescePartitionsExec::new(plan));
        }
        reset_plan_states(plan)?.execute(0, Arc::clone(&self.context))
    }

    fn output(&self, job: &quern::Job) -> Outcome<quern::Output> {
        let options =
            OutputOptions { batch_rows: self.context.session_config().batch_size() as u64, ..OutputOptions::default() };
        Ok(job.output_with(Port::Rows, &options)?)
    }

    /// The plan's columns of a job's result.
    fn result(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        match &self.fragment.sink {
            Sink::Groups(_, outputs) => results::batch(&self.schema, batch, outputs),
            Sink::Sorted(_, from) => {
                let columns: Vec<_> = from.iter().map(|&column| OutputColumn::Same(column)).collect();
                results::batch(&self.schema, batch, &columns)
            }
            Sink::Rows { .. } => self.joined(batch),
        }
    }

    fn joined(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns: Vec<_> =
            self.fragment.chain.columns.iter().map(|&column| OutputColumn::Same(column as usize)).collect();
        results::batch(&self.schema, batch, &columns)
    }
}
