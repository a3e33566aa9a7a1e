// SPDX-License-Identifier: Apache-2.0
//! The executor of `Ballista` with the engine of Quern, and with all of the options that it has without.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::error::{BallistaError, Result};
use ballista_core::object_store::{runtime_env_with_s3_support, session_config_with_s3_support};
use ballista_executor::config::Config;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::spawn_health_server;
use clap::Parser;

mod common;

use common::{LogOptions, start_log};

/// As in the stock executor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<()> {
    let options = Config::parse();
    let health_address = format!("{}:{}", options.bind_host, options.bind_health_port);
    let health_address: SocketAddr = health_address.parse().map_err(|error| {
        BallistaError::Configuration(format!("{health_address}: {error}; accepted: an IP address and a port"))
    })?;
    let mut config: ExecutorProcessConfig = options.try_into()?;
    config.override_config_producer = Some(Arc::new(session_config_with_s3_support));
    config.override_runtime_producer = Some(Arc::new(runtime_env_with_s3_support));
    let config = quern_ballista::enable(config);
    start_log(LogOptions {
        filter: &config.special_mod_log_level,
        has_threads: config.print_thread_info,
        folder: config.log_dir.as_deref(),
        rotation: config.log_rotation_policy,
        file_prefix: config.log_file_name_prefix(),
    });

    let (stop_health, stopped) = tokio::sync::oneshot::channel();
    let health = spawn_health_server(health_address, config.health.clone(), stopped);
    let ended = start_executor_process(Arc::new(config)).await;
    let _ = stop_health.send(()); // the server may have ended by itself
    if let Err(error) = health.await {
        log::warn!("health server: {error}");
    }
    ended
}
