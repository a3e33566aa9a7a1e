// SPDX-License-Identifier: Apache-2.0
//! The plan of a task with fragments replaced, and how the scheduler is told about it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::execution_plans::{ShuffleWriterExec, SortShuffleWriterExec, compute_global_output_partition_ids};
use ballista_core::serde::protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport};
use ballista_core::utils::collect_plan_metrics;
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use quern_datafusion::{QuernConfig, QuernExec, replace_fragments, replace_sort_of_partitions};

/// The plan of a task, after the rule.
pub(crate) struct Replaced {
    plan: Arc<dyn ExecutionPlan>,
    metrics: Vec<Source>,
}

/// Where the metrics of a node of the original plan come from: a number among those of the replaced plan, or nowhere,
/// for a node that is part of a fragment.
type Source = Option<usize>;

impl Replaced {
    /// Replaces fragments where the result is, partition by partition, one that the stages behind may read instead.
    ///
    /// A task has the whole of a plan for some partitions of its stage, and runs them all. So a fragment may move rows
    /// from one of them to another, as long as nobody relies on where they are: the writer of a hash shuffle divides
    /// them anew, and readers of the other one put partitions together. What is not sure to be so stays as it is.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>, settings: &QuernConfig, options: &ConfigOptions) -> Result<Self> {
        let same = || {
            let metrics = (0..collect_plan_metrics(plan.as_ref()).len()).map(Some).collect();
            Self { plan: Arc::clone(plan), metrics }
        };
        if !settings.enabled || !is_plain(plan) {
            return Ok(same());
        }
        let [below] = plan.children()[..] else { return Ok(same()) };
        let replaced = replaced_below_writer(below, settings, options)?;
        let whole = replace_children_if_necessary(Arc::clone(plan), vec![replaced])?;
        match metric_sources(plan, &whole) {
            Some(metrics) if writes_alike(plan, &whole) => Ok(Self { plan: whole, metrics }),
            _ => Ok(same()),
        }
    }

    pub(crate) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// The names of the plan's nodes, those of each branch from the writer down to its source.
    pub(crate) fn summary(&self) -> String {
        fn add(plan: &Arc<dyn ExecutionPlan>, text: &mut String) {
            text.push_str(plan.name());
            if let Some(quern) = plan.downcast_ref::<QuernExec>() {
                text.push_str(" (");
                text.push_str(&quern.operators());
                text.push(')');
            }
            let children = plan.children();
            for (number, child) in children.iter().enumerate() {
                text.push_str(if children.len() == 1 {
                    " <- "
                } else if number == 0 {
                    " <- ["
                } else {
                    " | "
                });
                add(child, text);
            }
            if children.len() > 1 {
                text.push(']');
            }
        }
        let mut text = String::new();
        add(&self.plan, &mut text);
        text
    }
}

/// Whether a plan has none of the nodes through which the scheduler learns about rows in between, or that rely on the
/// values of a partition.
fn is_plain(plan: &Arc<dyn ExecutionPlan>) -> bool {
    (plan.is::<ShuffleWriterExec>() || plan.is::<SortShuffleWriterExec>())
        && plan.children().into_iter().all(has_no_special_nodes)
}

fn has_no_special_nodes(plan: &Arc<dyn ExecutionPlan>) -> bool {
    const SPECIAL: [&str; 8] = [
        "RuntimeStatsExec",
        "RangeFilterExec",
        "PrefixMergeExec",
        "RangeShuffleReaderExec",
        "OrderedRangeRepartitionExec",
        "UnorderedRangeRepartitionExec",
        "PartitionedBoundedWindowAggExec",
        "PerPartitionFilterExec",
    ];
    !SPECIAL.contains(&plan.name()) && plan.children().into_iter().all(has_no_special_nodes)
}

fn replaced_below_writer(
    plan: &Arc<dyn ExecutionPlan>,
    settings: &QuernConfig,
    options: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    // Projections keep the order of rows, which is that of the sort below.
    if plan.is::<ProjectionExec>() {
        let children = plan.children().into_iter().map(|child| replaced_below_writer(child, settings, options));
        return replace_children_if_necessary(Arc::clone(plan), children.collect::<Result<_>>()?);
    }
    if plan.is::<SortExec>()
        && let Some(sorted) = replace_sort_of_partitions(plan, settings)?
    {
        return Ok(sorted);
    }
    replace_fragments(plan, settings, options)
}

/// Whether the files of a writer over the new plan have the names and partitions that the scheduler expects.
fn writes_alike(old: &Arc<dyn ExecutionPlan>, new: &Arc<dyn ExecutionPlan>) -> bool {
    let partitions = |plan: &Arc<dyn ExecutionPlan>| {
        plan.children().first().map_or(0, |child| child.output_partitioning().partition_count())
    };
    // Numbers that no plan has by itself.
    let given: Vec<_> = (1_000_000..1_000_000 + partitions(old)).collect();
    partitions(old) == partitions(new)
        && compute_global_output_partition_ids(old, &given) == compute_global_output_partition_ids(new, &given)
}

// ---- metrics ----

/// The scheduler adds up the metrics of a stage's tasks by the places of nodes in the plan that it has sent, whoever
/// runs them. So the metrics of a fragment are reported as those of its uppermost node, and the other ones as empty.
/// None for a plan in which the places cannot be told.
fn metric_sources(old: &Arc<dyn ExecutionPlan>, new: &Arc<dyn ExecutionPlan>) -> Option<Vec<Source>> {
    let mut sources = Sources { of_new: 0, found: vec![] };
    sources.of_node(old, new)?;
    (sources.of_new == collect_plan_metrics(new.as_ref()).len()).then_some(sources.found)
}

/// A source of a fragment, and the plan that is in its place.
type Replacement<'a> = (&'a Arc<dyn ExecutionPlan>, &'a Arc<dyn ExecutionPlan>);

struct Sources {
    /// How many of the new plan's metrics have been passed.
    of_new: usize,
    found: Vec<Source>,
}

impl Sources {
    fn of_node(&mut self, old: &Arc<dyn ExecutionPlan>, new: &Arc<dyn ExecutionPlan>) -> Option<()> {
        let number = new.metrics().is_some().then_some(self.of_new);
        self.of_new += usize::from(number.is_some());
        if old.metrics().is_some() {
            self.found.push(number);
        }
        if let Some(quern) = new.downcast_ref::<QuernExec>() {
            let mut open: Vec<_> = quern.sources().iter().zip(new.children()).map(Some).collect();
            self.of_fragment(old, &mut open)?;
            return open.iter().all(Option::is_none).then_some(());
        }
        let (old_children, new_children) = (old.children(), new.children());
        if old.name() != new.name() || old_children.len() != new_children.len() {
            return None;
        }
        old_children.into_iter().zip(new_children).try_for_each(|(old, new)| self.of_node(old, new))
    }

    /// The nodes below one that a fragment has replaced, down to its sources, which come in the order of the plan.
    fn of_fragment(&mut self, old: &Arc<dyn ExecutionPlan>, open: &mut [Option<Replacement<'_>>]) -> Option<()> {
        for child in old.children() {
            let place = open.iter().position(|source| source.is_some_and(|(source, _)| Arc::ptr_eq(source, child)));
            if let Some(place) = place {
                // Metrics of the new plan are in the order of its children.
                if open[..place].iter().any(Option::is_some) {
                    return None;
                }
                let (_, new) = open[place].take()?;
                self.of_node(child, new)?;
            } else {
                if child.metrics().is_some() {
                    self.found.push(None);
                }
                self.of_fragment(child, open)?;
            }
        }
        Some(())
    }
}

/// Runs a task. What it reports is laid out as the plan that the scheduler has sent.
pub(crate) struct QuernStage {
    inner: Arc<dyn QueryStageExecutor>,
    replaced: Replaced,
}

impl QuernStage {
    pub(crate) fn new(inner: Arc<dyn QueryStageExecutor>, replaced: Replaced) -> Self {
        Self { inner, replaced }
    }
}

impl fmt::Debug for QuernStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Display for QuernStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

#[async_trait]
impl QueryStageExecutor for QuernStage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        self.inner.execute_query_stage(task_id, context).await
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let metrics = self.inner.collect_plan_metrics();
        let of = |source: &Source| source.and_then(|number| metrics.get(number)).cloned().unwrap_or_default();
        self.replaced.metrics.iter().map(of).collect()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}
