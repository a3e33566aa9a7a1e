// SPDX-License-Identifier: Apache-2.0
//! The scheduler of `Ballista`, which also passes the settings `quern.*` of a session on to executors, and ends jobs
//! whose results are lost with an executor.

use std::sync::Arc;

use ballista_core::error::{BallistaError, Result};
use ballista_core::object_store::{session_config_with_s3_support, session_state_with_s3_support};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{Config, SchedulerConfig};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service};
use clap::{CommandFactory, FromArgMatches};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};

mod common;

use common::{LogOptions, start_log};

/// Plans are trees, which the scheduler walks by recursion.
const STACK_BYTES: usize = 32 << 20;

/// The options of the stock scheduler. A stage that cannot read a result fails its job, unless the user says otherwise:
/// `Ballista` would run the stage before it again, and does not recover from that (`quern_ballista`, `lost`).
fn options() -> Config {
    let command = Config::command().mut_arg("stage_max_failures", |option| option.default_value("1"));
    Config::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

async fn serve() -> Result<()> {
    let options = options();
    start_log(LogOptions {
        filter: &options.log_level_setting,
        has_threads: options.print_thread_info,
        folder: options.log_dir.as_deref(),
        rotation: options.log_rotation_policy,
        file_prefix: format!("scheduler_{}_{}_{}", options.namespace, options.external_host, options.bind_port),
    });
    let address = format!("{}:{}", options.bind_host, options.bind_port);
    let address = address.parse().map_err(|error| {
        BallistaError::Configuration(format!("{address}: {error}; accepted: an IP address and a port"))
    })?;
    let config: SchedulerConfig = options.try_into()?;
    let config = config
        .with_override_config_producer(quern_ballista::config_with_quern(Arc::new(session_config_with_s3_support)))
        .with_override_session_builder(Arc::new(session_state_with_s3_support));
    let cluster = BallistaCluster::new_from_config(&config).await?;
    config.validate()?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    let guard = tokio::spawn(quern_ballista::end_jobs_with_lost_results(scheduler.clone()));
    let served = start_grpc_service(address, scheduler).await;
    guard.abort();
    served
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK_BYTES).build()?;
    runtime.block_on(serve())
}
