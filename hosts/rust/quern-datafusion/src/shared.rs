// SPDX-License-Identifier: Apache-2.0
//! Partitions of a source that several tasks may read.
//!
//! Partitions may be of very different sizes: of two, one has all row groups of a file. So each is read by a task of
//! its own at first. Where that has taken some batches, and a thread has nothing to do, another task takes batches of
//! the same partition: while one sends a batch through a fragment, the other one decodes the next. (Tasks that helped
//! from the first batch on made queries of small tables slower by a twentieth: they sleep and wake each other.)

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

/// Batches that a partition has given before another task reads it, too.
const BATCHES_BEFORE_HELP: usize = 4;

struct Partition {
    /// None: it has ended.
    rows: Mutex<Option<SendableRecordBatchStream>>,
    /// Those that it has given; `usize::MAX`: all.
    batches: AtomicUsize,
    readers: AtomicUsize,
}

pub(crate) struct SharedRows {
    schema: SchemaRef,
    partitions: Vec<Partition>,
    /// Is told when one has ended.
    ahead: Option<Arc<ReadAhead>>,
    /// A partition has given so many batches that another task may read it.
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

    /// Waits until there may be a long partition that was none before.
    pub(crate) async fn has_long(&self) {
        self.is_long.notified().await;
    }

    /// The long partition that the fewest tasks read, if there is one.
    pub(crate) fn long_partition(&self) -> Option<usize> {
        let is_long = |batches| (BATCHES_BEFORE_HELP..usize::MAX).contains(&batches);
        let long = self.partitions.iter().enumerate();
        long.filter(|(_, partition)| is_long(partition.batches.load(Ordering::Relaxed)))
            .min_by_key(|(_, partition)| partition.readers.load(Ordering::Relaxed))
            .map(|(number, _)| number)
    }

    /// The next batch of a partition. Whoever else wants one waits until it is there, in the order of coming.
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

    /// What a task reads: all batches of a partition that no other task takes.
    pub(crate) fn rows(self: &Arc<Self>, partition: usize) -> SendableRecordBatchStream {
        self.partitions[partition].readers.fetch_add(1, Ordering::Relaxed);
        let batches = stream::unfold(Arc::clone(self), move |shared| async move {
            let batch = shared.next(partition).await?;
            Some((batch, shared))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}
