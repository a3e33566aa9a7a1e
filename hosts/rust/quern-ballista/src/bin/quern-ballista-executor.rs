// SPDX-License-Identifier: Apache-2.0
//! The executor of `Ballista` with the engine of Quern, and with all of the options that it has without.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::config::LogRotationPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::object_store::{runtime_env_with_s3_support, session_config_with_s3_support};
use ballista_executor::config::Config;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::spawn_health_server;
use clap::Parser;
use tracing_appender::rolling;
use tracing_subscriber::EnvFilter;

/// As in the stock executor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn start_log(config: &ExecutorProcessConfig) {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| config.special_mod_log_level.clone());
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_thread_names(config.print_thread_info)
        .with_thread_ids(config.print_thread_info)
        .with_env_filter(EnvFilter::new(filter));
    let Some(folder) = &config.log_dir else {
        log.init();
        return;
    };
    let file = match config.log_rotation_policy {
        LogRotationPolicy::Minutely => rolling::minutely,
        LogRotationPolicy::Hourly => rolling::hourly,
        LogRotationPolicy::Daily => rolling::daily,
        LogRotationPolicy::Never => rolling::never,
    };
    log.with_writer(file(folder, config.log_file_name_prefix())).init();
}

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
    start_log(&config);

    let (stop_health, stopped) = tokio::sync::oneshot::channel();
    let health = spawn_health_server(health_address, config.health.clone(), stopped);
    let ended = start_executor_process(Arc::new(config)).await;
    let _ = stop_health.send(()); // the server may have ended by itself
    if let Err(error) = health.await {
        log::warn!("health server: {error}");
    }
    ended
}
