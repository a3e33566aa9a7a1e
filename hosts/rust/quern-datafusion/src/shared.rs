// SPDX-License-Identifier: Apache-2.0
//! Partitions of a source that several tasks may read.
//!
//! Partitions may differ much in size: one may have all row groups of a file, and the other none. At first each is read
//! by a task of its own. Where that task has taken some batches and a thread is idle, a second task reads the same
//! partition: while one sends a batch through the fragment, the other decodes the next. (Where second tasks began with
//! the first batch, queries of small tables took a twentieth longer: the tasks slept and woke each other.)

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::{Mutex, Notify};

use crate::ahead::ReadAhead;

/// Batches that a partition gives before a second task may read it.
const BATCHES_BEFORE_HELP: usize = 4;

struct Partition {
    /// None: it has ended.
    rows: Mutex<Option<SendableRecordBatchStream>>,
    /// The number that it has given; `usize::MAX`: it has ended.
    batches: AtomicUsize,
    /// Tasks that read it, or did.
    readers: AtomicUsize,
}

pub(crate) struct SharedRows {
    schema: SchemaRef,
    partitions: Vec<Partition>,
    /// Is told when a partition has ended.
    ahead: Option<Arc<ReadAhead>>,
    /// Tells that a partition may be read by a second task.
    is_long: Notify,
}

impl SharedRows {
    pub(crate) fn new(
        schema: SchemaRef,
        partitions: Vec<SendableRecordBatchStream>,
        ahead: Option<Arc<ReadAhead>>,
    ) -> Arc<Self> {
        let partition = |rows| Partition {
            rows: Mutex::new(Some(rows)),
            batches: AtomicUsize::new(0),
            readers: AtomicUsize::new(0),
        };
        let partitions = partitions.into_iter().map(partition).collect();
        Arc::new(Self { schema, partitions, ahead, is_long: Notify::new() })
    }

    pub(crate) fn num_partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Waits until another partition has become long.
    pub(crate) async fn has_long(&self) {
        self.is_long.notified().await;
    }

    /// Of the long partitions that have not ended, the one that the fewest tasks read.
    pub(crate) fn long_partition(&self) -> Option<usize> {
        let is_long = |batches| (BATCHES_BEFORE_HELP..usize::MAX).contains(&batches);
        let long = self.partitions.iter().enumerate();
        long.filter(|(_, partition)| is_long(partition.batches.load(Ordering::Relaxed)))
            .min_by_key(|(_, partition)| partition.readers.load(Ordering::Relaxed))
            .map(|(number, _)| number)
    }

    /// The next batch of a partition. Tasks that call it at once get their batches one after the other.
    async fn next(&self, partition: usize) -> Option<Result<RecordBatch>> {
        let of = &self.partitions[partition];
        let mut rows = of.rows.lock().await;
        let batch = rows.as_mut()?.next().await;
        if batch.is_none() {
            *rows = None;
            of.batches.store(usize::MAX, Ordering::Relaxed);
            if let Some(ahead) = &self.ahead {
                ahead.partition_ended();
            }
        } else if of.batches.fetch_add(1, Ordering::Relaxed) + 1 == BATCHES_BEFORE_HELP {
            self.is_long.notify_one();
        }
        batch
    }

    /// The batches of a partition for one task. Each batch goes to one of its tasks.
    pub(crate) fn rows(self: &Arc<Self>, partition: usize) -> SendableRecordBatchStream {
        self.partitions[partition].readers.fetch_add(1, Ordering::Relaxed);
        let batches = stream::unfold(Arc::clone(self), move |shared| async move {
            let batch = shared.next(partition).await?;
            Some((batch, shared))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int32Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};
    use datafusion::common::Result;
    use datafusion::physical_plan::SendableRecordBatchStream;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::{StreamExt, stream};

    use super::{BATCHES_BEFORE_HELP, SharedRows};

    /// Batches of one row, which has the batch's number.
    fn partition(batches: i32) -> SendableRecordBatchStream {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int32, false)]));
        let batch = |n| RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int32Array::from(vec![n]))]);
        let rows: Vec<_> = (0..batches).map(|n| Ok(batch(n)?)).collect();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), stream::iter(rows)))
    }

    #[tokio::test]
    async fn a_partition_is_long_from_some_batches_on_until_it_ends() -> Result<()> {
        let short = partition(1);
        let shared = SharedRows::new(short.schema(), vec![short, partition(6)], None);
        let (mut ended, mut rows) = (shared.rows(0), shared.rows(1));
        while ended.next().await.transpose()?.is_some() {}
        for _ in 0..BATCHES_BEFORE_HELP {
            assert_eq!(shared.long_partition(), None);
            assert!(rows.next().await.is_some());
        }
        shared.has_long().await;
        assert_eq!(shared.long_partition(), Some(1));
        while rows.next().await.transpose()?.is_some() {}
        assert_eq!(shared.long_partition(), None);
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_tasks_take_each_batch_once() -> Result<()> {
        const BATCHES: i32 = 500;
        let rows = partition(BATCHES);
        let shared = SharedRows::new(rows.schema(), vec![rows], None);
        let tasks = [shared.rows(0), shared.rows(0)].map(|mut rows| {
            tokio::spawn(async move {
                let mut taken = vec![];
                while let Some(batch) = rows.next().await.transpose()? {
                    taken.push(batch.column(0).as_primitive::<Int32Type>().value(0));
                    tokio::task::yield_now().await;
                }
                Ok::<_, datafusion::common::DataFusionError>(taken)
            })
        });
        let mut all = vec![];
        for task in tasks {
            all.extend(task.await.map_err(std::io::Error::other)??);
        }
        all.sort_unstable();
        assert_eq!(all, (0..BATCHES).collect::<Vec<_>>());
        Ok(())
    }
}
