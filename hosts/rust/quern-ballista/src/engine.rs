// SPDX-License-Identifier: Apache-2.0
//! The execution engine of an executor.

use std::sync::Arc;
use std::time::Duration;

use ballista_core::client_pool::BallistaClientPool;
use ballista_core::execution_plans::{RangeShuffleReaderExec, ShuffleReaderExec};
use ballista_core::{ConfigProducer, JobId};
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use ballista_executor::executor_process::ExecutorProcessConfig;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use quern_datafusion::QuernConfig;

use crate::connections::Connections;
use crate::stage::{QuernStage, Replaced};

/// Runs tasks as `Ballista`'s own engine does, with fragments of their plans as kernels.
///
/// Settings are those of the session, `quern.*`, where the scheduler passes them on; otherwise their defaults.
#[derive(Default)]
pub struct QuernEngine {
    inner: DefaultExecutionEngine,
    client_pool: Option<Arc<dyn BallistaClientPool>>,
}

impl QuernEngine {
    /// An engine that opens a connection for each read of the shuffle.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine that takes connections from a pool.
    #[must_use]
    pub fn with_client_pool(client_pool: Arc<dyn BallistaClientPool>) -> Self {
        Self {
            inner: DefaultExecutionEngine::with_client_pool(Arc::clone(&client_pool)),
            client_pool: Some(client_pool),
        }
    }

    /// The plan, with readers that know where the files of this executor are. The engine inside does the same, but does
    /// not see the plans that fragments fall back to.
    fn with_readers(&self, plan: Arc<dyn ExecutionPlan>, work_dir: &str) -> Result<Arc<dyn ExecutionPlan>> {
        let located = plan.transform_up(|node| {
            let pool = self.client_pool.as_ref().map(Arc::clone);
            let located: Arc<dyn ExecutionPlan> = if let Some(reader) = node.downcast_ref::<ShuffleReaderExec>() {
                let reader = reader.with_work_dir(work_dir.to_owned());
                Arc::new(match pool {
                    Some(pool) => reader.with_client_pool(pool),
                    None => reader,
                })
            } else if let Some(reader) = node.downcast_ref::<RangeShuffleReaderExec>() {
                let reader = reader.with_work_dir(work_dir.to_owned());
                Arc::new(match pool {
                    Some(pool) => reader.with_client_pool(pool),
                    None => reader,
                })
            } else {
                return Ok(Transformed::no(node));
            };
            Ok(Transformed::yes(located))
        })?;
        Ok(located.data)
    }
}

impl ExecutionEngine for QuernEngine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let settings = config.options().extensions.get::<QuernConfig>().cloned().unwrap_or_default();
        let plan = self.with_readers(plan, work_dir)?;
        let replaced = Replaced::of(&plan, &settings, config.options())?;
        log::info!("job {job_id}, stage {stage_id}, task {task_id}: {}", replaced.summary());
        let create = |plan| {
            let partitions = global_output_partition_ids.clone();
            self.inner.create_query_stage_exec(job_id.clone(), stage_id, task_id, partitions, plan, work_dir, config)
        };
        Ok(Arc::new(QuernStage::new(create(Arc::clone(replaced.plan()))?, replaced)))
    }
}

/// Adds Quern's settings to the session configuration of a producer, so that those of a client's session reach tasks.
/// Schedulers and executors both need it; where a scheduler has none, executors take the defaults.
pub fn config_with_quern(producer: ConfigProducer) -> ConfigProducer {
    Arc::new(move || producer().with_option_extension(QuernConfig::default()))
}

/// Gives an executor this engine, and the settings `quern.*`. Whatever else its configuration says stays as it is.
#[must_use]
pub fn enable(mut config: ExecutorProcessConfig) -> ExecutorProcessConfig {
    let producer = config.override_config_producer.take();
    let producer = producer.unwrap_or_else(|| Arc::new(ballista_core::utils::default_config_producer));
    config.override_config_producer = Some(config_with_quern(producer));
    let engine = if config.client_ttl == 0 {
        QuernEngine::new()
    } else {
        let idle = Duration::from_secs(config.client_ttl);
        QuernEngine::with_client_pool(Arc::new(Connections::new(idle)))
    };
    config.override_execution_engine = Some(Arc::new(engine));
    config
}
