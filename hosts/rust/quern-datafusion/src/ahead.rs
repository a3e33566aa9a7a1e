// SPDX-License-Identifier: Apache-2.0
//! Rows of a fragment's last source that are read while its tables are built.
//!
//! A table may come from a file that one task has to decode, as a Parquet file of one row group. Other threads would
//! have little to do meanwhile. As soon as fewer partitions are read for tables than there are threads, partitions of
//! the last source are begun, one for each thread, and their first batches are kept until the tables are there.
//!
//! A scan that is begun has not seen the tables' dynamic filters. Where these turn out to take values away from its
//! columns, it is begun anew: the rows that it has read were read by threads that had nothing else to do.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, RecordBatch};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream};
use futures::StreamExt;

/// What is kept of a partition: about what a core's share of the last cache holds.
const MOST_BYTES: usize = 8 << 20;

/// The last source of a fragment. *Threads*: any.
pub(crate) struct ReadAhead {
    source: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    /// Partitions whose rows go into tables.
    building: AtomicUsize,
    is_over: Arc<AtomicBool>,
    begun: Mutex<Vec<Begun>>,
}

/// A partition that has been begun, until its rows are taken.
struct Begun {
    partition: usize,
    task: SpawnedTask<Result<Kept>>,
}

/// The first batches of a partition, the last of which may be its failure, and the others.
struct Kept {
    first: Vec<Result<RecordBatch>>,
    others: SendableRecordBatchStream,
}

fn bytes_of(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(MOST_BYTES)).sum()
}

async fn keep(mut others: SendableRecordBatchStream, is_over: Arc<AtomicBool>) -> Kept {
    let (mut first, mut bytes) = (vec![], 0);
    while bytes < MOST_BYTES
        && !is_over.load(Ordering::Relaxed)
        && let Some(batch) = others.next().await
    {
        let has_failed = batch.is_err();
        bytes += batch.as_ref().map_or(0, bytes_of);
        first.push(batch);
        if has_failed {
            break;
        }
    }
    Kept { first, others }
}

impl ReadAhead {
    /// Of a scan of files. Other sources are nothing that is worth it, as rows in memory, or may not be begun twice.
    pub(crate) fn of(source: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Option<Self> {
        let scan = source.downcast_ref::<DataSourceExec>()?;
        scan.data_source().downcast_ref::<FileScanConfig>()?;
        Some(Self {
            source: Arc::clone(source),
            context: Arc::clone(context),
            building: AtomicUsize::new(0),
            is_over: Arc::new(AtomicBool::new(false)),
            begun: Mutex::new(vec![]),
        })
    }

    /// Whether it is this source whose rows are read ahead.
    pub(crate) fn is_of(&self, source: &Arc<dyn ExecutionPlan>) -> bool {
        Arc::ptr_eq(&self.source, source)
    }

    /// Partitions begin whose rows go into a table.
    pub(crate) fn partitions_begin(&self, partitions: usize) {
        self.building.fetch_add(partitions, Ordering::Relaxed);
    }

    /// One of them has ended. Its thread may have nothing to do.
    pub(crate) fn partition_ended(&self) {
        let left = self.building.fetch_sub(1, Ordering::Relaxed) - 1;
        let threads = self.context.session_config().target_partitions();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let partition = begun.len();
        let is_over = self.is_over.load(Ordering::Relaxed);
        if is_over || left + partition >= threads || partition >= self.source.output_partitioning().partition_count() {
            return;
        }
        let (source, context, is_over) =
            (Arc::clone(&self.source), Arc::clone(&self.context), Arc::clone(&self.is_over));
        let task = SpawnedTask::spawn(async move { Ok(keep(source.execute(partition, context)?, is_over).await) });
        begun.push(Begun { partition, task });
    }

    /// The tables are there; no more rows are kept. Returns the source, which is another one, without what has been
    /// read, where the scan has to begin anew.
    pub(crate) fn end(&self, begins_anew: bool) -> Result<Arc<dyn ExecutionPlan>> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if !begins_anew || begun.is_empty() {
            return Ok(Arc::clone(&self.source));
        }
        begun.clear();
        reset_plan_states(Arc::clone(&self.source))
    }

    /// The rows of a partition that has been begun.
    pub(crate) async fn take(&self, partition: usize) -> Result<Option<SendableRecordBatchStream>> {
        let taken = {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            begun.iter().position(|other| other.partition == partition).map(|at| begun.swap_remove(at))
        };
        let Some(Begun { task, .. }) = taken else { return Ok(None) };
        let kept = task.join().await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
        let schema = kept.others.schema();
        let rows = futures::stream::iter(kept.first).chain(kept.others);
        Ok(Some(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }
}
