// SPDX-License-Identifier: Apache-2.0
//! Sources that belong to another copy of `DataFusion` in this process.
//!
//! Their streams have to be polled by whoever polls the node: tasks of this copy's runtime cannot be seen by the tokio
//! of the other one. A source of several partitions is read by tasks of the other copy, as [`FeedExec`] says. One
//! future reads a source of one partition, as part of the node's own stream, and hands batches on to a task.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use tokio::sync::mpsc::{Sender, channel};

use crate::exec::QuernExec;
use crate::run::{Failure, Outcome};

/// Batches that wait between a source and who takes them. With two of them queries took a fifth longer: both sides
/// sleep and wake each other for each batch.
const WAITING_BATCHES: usize = 16;

/// A stream of what the future hands on. The future has to be polled while the stream is read.
pub(crate) fn handed_over(
    rows: SendableRecordBatchStream,
) -> (SendableRecordBatchStream, impl Future<Output = Result<()>> + Send) {
    let schema = rows.schema();
    let (sender, receiver) = channel(WAITING_BATCHES);
    let waiting =
        stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|batch| (Ok(batch), receiver)));
    (Box::pin(RecordBatchStreamAdapter::new(schema, waiting)), hand_over(rows, sender))
}

/// A reader that has gone takes no more; whether it has failed, it says itself.
async fn hand_over(mut rows: SendableRecordBatchStream, to: Sender<RecordBatch>) -> Result<()> {
    while let Some(batch) = rows.next().await {
        if to.send(batch?).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// The plan with a [`FeedExec`] above each source of several partitions whose rows a fragment collects, and above that
/// a `CoalescePartitionsExec`: a node of the session, which has a task for each partition. So the task that has read a
/// batch sends it into the fragment's job, as it is done where all is one copy of `DataFusion`.
///
/// # Errors
///
/// Those of plans that do not take other children.
pub(crate) fn read_by_session(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let read = plan.transform_up(|node| {
        let Some(quern) = node.downcast_ref::<QuernExec>() else { return Ok(Transformed::no(node)) };
        let children = node.children().into_iter().enumerate().map(|(number, source)| {
            if quern.collects(number) && source.output_partitioning().partition_count() > 1 {
                Arc::new(CoalescePartitionsExec::new(Arc::new(FeedExec { source: Arc::clone(source) })))
            } else {
                Arc::clone(source)
            }
        });
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        Ok(Transformed::yes(Arc::clone(&node).replace_children(children.collect(), options)?))
    })?;
    Ok(read.data)
}

/// Sends the rows of a source into a job of the fragment above, in the task that reads them, and has no rows itself.
/// Executed by anything else than a fragment, it has the rows of its source.
#[derive(Debug)]
pub(crate) struct FeedExec {
    source: Arc<dyn ExecutionPlan>,
}

/// What takes the rows of a partition.
pub(crate) type Taker = Box<dyn FnOnce(SendableRecordBatchStream) -> BoxFuture<'static, Outcome<()>> + Send>;

/// The feeds of partitions that have not been executed, by task and partition. A fragment and the [`FeedExec`] below it
/// share nothing else: a node of the other copy lies between them, which hands on the name of the context's task.
static FEEDS: LazyLock<Mutex<HashMap<(String, usize), Feed>>> = LazyLock::new(Mutex::default);

struct Feed {
    taker: Taker,
    /// The first failure, which the other copy would hand on as a text.
    failure: Arc<Mutex<Option<Failure>>>,
}

fn feeds() -> std::sync::MutexGuard<'static, HashMap<(String, usize), Feed>> {
    FEEDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The feeds of one source. Those that are left are removed with it.
struct Registered {
    task: String,
    partitions: usize,
}

impl Registered {
    fn new(takers_of_partitions: Vec<Taker>, failure: &Arc<Mutex<Option<Failure>>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let task = format!("quern-feed-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let partitions = takers_of_partitions.len();
        let mut all = feeds();
        for (partition, taker) in takers_of_partitions.into_iter().enumerate() {
            all.insert((task.clone(), partition), Feed { taker, failure: Arc::clone(failure) });
        }
        Self { task, partitions }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let numbers = 0..self.partitions;
        let removed: Vec<_> = numbers.map(|partition| feeds().remove(&(self.task.clone(), partition))).collect();
        drop(removed); // while nobody waits for the table
    }
}

impl FeedExec {
    pub(crate) fn new(source: Arc<dyn ExecutionPlan>) -> Self {
        Self { source }
    }

    /// The feed below a source of a fragment, where there is one.
    pub(crate) fn below(source: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        source.children().into_iter().find(|child| child.is::<Self>()).map(Arc::clone)
    }

    /// Reads a source with a feed below it, a taker for each partition of the feed.
    pub(crate) async fn read(
        source: &Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        takers_of_partitions: Vec<Taker>,
    ) -> Outcome<()> {
        let failure = Arc::new(Mutex::new(None));
        let registered = Registered::new(takers_of_partitions, &failure);
        let context = without_functions(&context, Some(registered.task.clone()));
        let mut rows = source.execute(0, context)?;
        let error = match rows.next().await {
            None => return Ok(()),
            Some(Ok(batch)) => DataFusionError::Internal(format!("{} rows of a FeedExec", batch.num_rows())),
            Some(Err(error)) => error,
        };
        let first = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(first.unwrap_or_else(|| error.into()))
    }
}

/// A context without functions, under the name of a task. It is for sources, which were planned with their functions:
/// where a context crosses to the other copy, each of its functions is made one of that copy.
pub(crate) fn without_functions(context: &TaskContext, task: Option<String>) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        task,
        context.session_id(),
        context.session_config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        context.runtime_env(),
    ))
}

impl DisplayAs for FeedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeedExec")
    }
}

impl ExecutionPlan for FeedExec {
    fn name(&self) -> &'static str {
        "FeedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.source.properties()
    }

    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.source]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(source) if children.is_empty() => Ok(Arc::new(Self { source })),
            _ => Err(DataFusionError::Internal("FeedExec with another number of children than one".into())),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let feed = context.task_id().and_then(|task| feeds().remove(&(task, partition)));
        let rows = self.source.execute(partition, without_functions(&context, None))?;
        let Some(Feed { taker, failure }) = feed else { return Ok(rows) };
        let schema = self.schema();
        let nothing = stream::once(async move {
            let error = taker(rows).await.err()?;
            let text = DataFusionError::Execution(match &error {
                Failure::Quern(error) => error.to_string(),
                Failure::Host(error) => error.to_string(),
            });
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Some(Err(text))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, nothing.filter_map(std::future::ready))))
    }
}
