// SPDX-License-Identifier: Apache-2.0
//! Rows of a fragment's last source that are read while its tables are built.
//!
//! A table may come from a file that only one task can decode, such as a Parquet file of one row group. Other threads
//! are idle then. So as soon as fewer partitions are read for tables than there are threads, partitions of the last
//! source are begun, one for each thread. Their first batches are kept until the tables are there.
//!
//! Such a scan has not seen the tables' dynamic filters. Where the filters then rule out a good part of a column's
//! values, the scan begins anew. Only time of idle threads is lost.

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

/// The bytes that are kept of a partition: about a core's share of the last cache.
const MOST_BYTES: usize = 8 << 20;

/// The last source of a fragment. *Threads*: any.
pub(crate) struct ReadAhead {
    source: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    threads: usize,
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
    /// Of a scan of files. Rows in memory need no decoding, and other plans may not be executed twice.
    pub(crate) fn of(source: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>, threads: usize) -> Option<Self> {
        let scan = source.downcast_ref::<DataSourceExec>()?;
        scan.data_source().downcast_ref::<FileScanConfig>()?;
        Some(Self {
            source: Arc::clone(source),
            context: Arc::clone(context),
            threads,
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
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let partition = begun.len();
        let is_over = self.is_over.load(Ordering::Relaxed);
        let partitions = self.source.output_partitioning().partition_count();
        if is_over || left + partition >= self.threads || partition >= partitions {
            return;
        }
        let (source, context, is_over) =
            (Arc::clone(&self.source), Arc::clone(&self.context), Arc::clone(&self.is_over));
        let task = SpawnedTask::spawn(async move { Ok(keep(source.execute(partition, context)?, is_over).await) });
        begun.push(Begun { partition, task });
    }

    /// The tables are there: no more rows are kept. Returns whether a partition has been begun.
    pub(crate) fn end(&self) -> bool {
        self.is_over.store(true, Ordering::Relaxed);
        !self.begun.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Drops what has been read. Returns the source as a plan that has not been executed.
    pub(crate) fn begin_anew(&self) -> Result<Arc<dyn ExecutionPlan>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).clear();
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use datafusion::common::{DataFusionError, Result};
    use datafusion::prelude::{ParquetReadOptions, SessionContext};
    use futures::TryStreamExt;

    use super::ReadAhead;

    const ROWS: usize = 3000;

    /// A file that goes away with the test.
    struct File(PathBuf);

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// A scan of a file that is read ahead, as the only partition that was read for a table has ended.
    async fn read_ahead(name: &str) -> Result<(ReadAhead, SessionContext, File)> {
        let context = SessionContext::new();
        let name = format!("quern-ahead-{name}-{}.parquet", std::process::id());
        let file = File(std::env::temp_dir().join(name));
        let path = file.0.to_string_lossy();
        let rows = format!("copy (select value as k from generate_series(1, {ROWS})) to '{path}' stored as parquet");
        context.sql(&rows).await?.collect().await?;
        let scan = context.read_parquet(path.as_ref(), ParquetReadOptions::default()).await?;
        let scan = scan.create_physical_plan().await?;
        let ahead = ReadAhead::of(&scan, &context.task_ctx(), 1);
        let ahead = ahead.ok_or_else(|| DataFusionError::Internal("no scan".to_owned()))?;
        ahead.partitions_begin(1);
        assert!(ahead.begun.lock().is_ok_and(|begun| begun.is_empty()));
        ahead.partition_ended();
        drop(path);
        Ok((ahead, context, file))
    }

    #[tokio::test]
    async fn rows_that_were_read_ahead_come_first() -> Result<()> {
        let (ahead, _, _file) = read_ahead("kept").await?;
        assert!(ahead.end());
        let rows = ahead.take(0).await?;
        let rows: Vec<_> = rows.ok_or_else(|| std::io::Error::other("not begun"))?.try_collect().await?;
        assert_eq!(rows.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), ROWS);
        assert!(ahead.take(0).await?.is_none());
        Ok(())
    }

    #[tokio::test]
    async fn a_scan_begins_anew_with_all_rows() -> Result<()> {
        let (ahead, context, _file) = read_ahead("anew").await?;
        assert!(ahead.end());
        let source = ahead.begin_anew()?;
        assert!(!ahead.is_of(&source) && ahead.take(0).await?.is_none());
        let rows: Vec<_> = source.execute(0, context.task_ctx())?.try_collect().await?;
        assert_eq!(rows.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), ROWS);
        Ok(())
    }

    #[tokio::test]
    async fn nothing_is_begun_when_the_tables_are_there() -> Result<()> {
        let (ahead, _, _file) = read_ahead("over").await?;
        ahead.begin_anew()?;
        assert!(!ahead.end());
        ahead.partitions_begin(1);
        ahead.partition_ended();
        assert!(!ahead.end());
        Ok(())
    }
}
