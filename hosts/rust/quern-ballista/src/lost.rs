// SPDX-License-Identifier: Apache-2.0
//! Executors that are lost in the middle of a query.
//!
//! `Ballista` 55 gives the tasks that a lost executor was running to another one. When the executor had results of a
//! stage that a later one reads, it runs that stage again, too, and does not recover (names are those of its sources):
//!
//! * The adaptive planner forgets the outputs of a stage when it ends (`take_stage_output_partitions`). So the results
//!   of its second run are refused: `Can't find active stage to update stage outputs`. The job waits for ever.
//! * The static planner runs a stage as a whole again when that stage's own input was lost as well
//!   (`RunningStage::to_unresolved`). It adds the results to those of the first run that are not lost. The job can end
//!   with rows counted several times.
//! * Under the policy `push-staged`, a task that is stopped because its stage has to run again never gives its cores
//!   back (`sum_vcores_for_statuses`: a stage that waits has no tasks). Without free cores the job waits for ever.
//!   Ending the job does not give them back either, so that later jobs can wait as well.
//!
//! So a scheduler ends such jobs, with [`end_jobs_with_lost_results`], and a client sends them again, with
//! [`collect_again`]. Both programs need the policy `pull-staged` for that.

use std::collections::HashSet;
use std::time::Duration;

use arrow::array::RecordBatch;
use ballista_core::serde::protobuf::task_status::Status;
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::execution_graph::ExecutionGraph;
use ballista_scheduler::state::execution_stage::ExecutionStage;
use datafusion::common::{DataFusionError, Result};
use datafusion::dataframe::DataFrame;
use datafusion_proto::logical_plan::AsLogicalPlan;
use datafusion_proto::physical_plan::AsExecutionPlan;
use futures::StreamExt;

/// How long the scheduler waits for news of executors before it looks at its jobs anyway.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Looks for jobs whose results are lost whenever a scheduler loses an executor, and ends them. Clients see the error
/// `Job ID failed: Cancelled`. It returns when the scheduler has no more events to give.
///
/// # Errors
///
/// Those of the scheduler, when it cannot give its events.
pub async fn end_jobs_with_lost_results<T, U>(scheduler: SchedulerServer<T, U>) -> ballista_core::error::Result<()>
where
    T: 'static + AsLogicalPlan,
    U: 'static + AsExecutionPlan,
{
    let mut events = scheduler.cluster_state_events().await?;
    loop {
        if let Ok(None) = tokio::time::timeout(LONGEST_WAIT, events.next()).await {
            return Ok(());
        }
        let executors = scheduler.state.executor_manager.get_executors_state().await?;
        let executors: HashSet<_> = executors.into_iter().map(|(executor, _, _)| executor.id).collect();
        for (job, info) in scheduler.state.task_manager.get_running_job_cache().iter() {
            let mut graph = info.execution_graph.write().await;
            if has_lost_results(graph.as_ref(), &executors) {
                log::warn!("job {job} is ended: an executor that had results of it is lost");
                // From here on no task of it is given to an executor.
                graph.fail_job("an executor that had results of this job is lost".to_owned());
                drop(graph);
                scheduler.cancel_job(job.clone()).await?;
            }
        }
    }
}

/// Whether a job needs results of an executor that is not among these, or has begun to run a stage again for that.
fn has_lost_results(graph: &(dyn ExecutionGraph + Send + Sync), executors: &HashSet<String>) -> bool {
    let is_lost = |stage: &ExecutionStage| match stage {
        ExecutionStage::UnResolved(stage) => stage.stage_attempt_num > 0,
        ExecutionStage::Resolved(stage) => stage.stage_attempt_num > 0,
        ExecutionStage::Running(stage) => stage.stage_attempt_num > 0,
        ExecutionStage::Successful(stage) => {
            let ended_on = |status: &Status| match status {
                Status::Successful(task) => Some(task.executor_id.clone()),
                Status::Running(_) | Status::Failed(_) => None,
            };
            let mut on = stage.task_infos.iter().filter_map(|task| ended_on(&task.task_status));
            stage.stage_attempt_num > 0 || on.any(|executor| !executors.contains(&executor))
        }
        ExecutionStage::Failed(_) => false,
    };
    // The static planner never takes back what it knows of the rows of a query.
    graph.output_locations().iter().any(|output| !executors.contains(&output.executor_meta.id))
        || graph.stages().values().any(is_lost)
}

/// The rows of a query, which is sent again if the cluster fails it, up to `times` times in all. A query that fails by
/// itself, in an expression for instance, is not sent again.
///
/// # Errors
///
/// That of the last time.
pub async fn collect_again(frame: DataFrame, times: usize) -> Result<Vec<RecordBatch>> {
    for time in 1..times {
        match frame.clone().collect().await {
            Err(error) if is_of_cluster(&error) => log::warn!("query sent again, {time} of {times} times: {error}"),
            ended => return ended,
        }
    }
    frame.collect().await
}

/// Whether an error may be that of a lost executor, rather than of the query itself.
fn is_of_cluster(error: &DataFusionError) -> bool {
    match error.find_root() {
        // What `Ballista` says of a task that failed for another reason than a lost input or a file.
        DataFusionError::Execution(text) => !text.contains("Task failed due to runtime execution error"),
        // Those of connections.
        DataFusionError::External(_) | DataFusionError::IoError(_) | DataFusionError::ArrowError(..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_cluster;
    use datafusion::common::DataFusionError;

    #[test]
    fn errors_of_a_query_are_final() {
        let of_job = |text: &str| is_of_cluster(&DataFusionError::Execution(text.to_owned()));
        assert!(of_job("Job 1 failed: Cancelled"));
        assert!(of_job("Job 1 failed: Job failed due to stage 2 failed: Stage 2 has failed 1 times"));
        assert!(!of_job(
            "Job 1 failed: Job failed due to stage 1 failed: Task failed due to runtime execution error: \
             DataFusionError(ArrowError(DivideByZero, None))"
        ));
        assert!(!is_of_cluster(&DataFusionError::Plan("no table".to_owned())));
    }
}
