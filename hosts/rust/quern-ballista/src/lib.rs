// SPDX-License-Identifier: Apache-2.0
//! Quern under `Ballista`: an execution engine for executors, which replaces fragments of the stages that they are
//! given by query kernels that are compiled on the machine of the executor.
//!
//! The scheduler and the clients stay as they are: a stage is planned, divided into tasks and sent as ever, and the
//! engine rewrites the plan of a task when it arrives, by the rule of [`quern_datafusion`]. What goes through the
//! shuffle is in the layout of `DataFusion`'s own operators, so that executors with and without Quern work on the same
//! query.
//!
//! ```no_run
//! # use std::sync::Arc;
//! use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
//! # #[tokio::main]
//! # async fn main() -> ballista_core::error::Result<()> {
//! let config = quern_ballista::enable(ExecutorProcessConfig { vcores: 4, ..ExecutorProcessConfig::default() });
//! start_executor_process(Arc::new(config)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The program `quern-ballista-executor` is the executor of `Ballista` with this engine and all of its options. The
//! program `quern-ballista-scheduler` is its scheduler, which also passes the settings on, and ends the jobs that
//! `Ballista` does not recover when an executor is lost; [`collect_again`] sends them again.

mod connections;
mod engine;
mod lost;
mod stage;

pub use engine::{QuernEngine, config_with_quern, enable};
pub use lost::{collect_again, end_jobs_with_lost_results};
