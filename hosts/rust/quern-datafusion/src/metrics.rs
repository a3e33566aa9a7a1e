// SPDX-License-Identifier: Apache-2.0
//! What `EXPLAIN ANALYZE` shows of a run.

use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

/// The counters of a run, which all its tasks share.
#[derive(Debug, Clone)]
pub(crate) struct RunMetrics {
    /// The time of kernels, of all threads together.
    pub(crate) compute: Time,
    /// Rows of the joins' tables, as they came in.
    pub(crate) build_input_rows: Count,
    /// Rows of the chain's source.
    pub(crate) input_rows: Count,
}

impl RunMetrics {
    /// They are listed under the partition that starts the run.
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize, compute: &Time) -> Self {
        Self {
            compute: compute.clone(),
            build_input_rows: MetricBuilder::new(metrics).counter("build_input_rows", partition),
            input_rows: MetricBuilder::new(metrics).counter("input_rows", partition),
        }
    }
}

/// Adds the time of a piece of work, which must not wait.
pub(crate) fn timed<T>(time: &Time, work: impl FnOnce() -> T) -> T {
    let _timer = time.timer();
    work()
}

/// A count of the library as one of metrics.
pub(crate) fn saturated(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
