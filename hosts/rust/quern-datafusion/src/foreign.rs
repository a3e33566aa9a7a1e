// SPDX-License-Identifier: Apache-2.0
//! Sources that belong to another copy of `DataFusion` in this process.
//!
//! Their streams have to be polled by whoever polls the node: tasks of this copy's runtime cannot be seen by the tokio
//! of the other one. So one future reads them, as part of the node's own stream, and hands batches on to tasks.

use arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::mpsc::{Sender, channel};

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
