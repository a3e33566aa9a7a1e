// SPDX-License-Identifier: Apache-2.0
//! What both programs do with their log options, which are those of the stock programs.

use ballista_core::config::LogRotationPolicy;
use tracing_appender::rolling;
use tracing_subscriber::EnvFilter;

/// Where a log goes, and what is in it.
pub struct LogOptions<'a> {
    /// What is logged; the environment variable `RUST_LOG` comes before it.
    pub filter: &'a str,
    pub has_threads: bool,
    /// The standard output without one.
    pub folder: Option<&'a str>,
    pub rotation: LogRotationPolicy,
    pub file_prefix: String,
}

pub fn start_log(options: LogOptions<'_>) {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_else(|_| options.filter.to_owned());
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_thread_names(options.has_threads)
        .with_thread_ids(options.has_threads)
        .with_env_filter(EnvFilter::new(filter));
    let Some(folder) = options.folder else {
        log.init();
        return;
    };
    let file = match options.rotation {
        LogRotationPolicy::Minutely => rolling::minutely,
        LogRotationPolicy::Hourly => rolling::hourly,
        LogRotationPolicy::Daily => rolling::daily,
        LogRotationPolicy::Never => rolling::never,
    };
    log.with_writer(file(folder, options.file_prefix)).init();
}
