// SPDX-License-Identifier: Apache-2.0
//! Quern under `DataFusion`: a physical optimizer rule that replaces fragments of plans, scans excepted, by kernels
//! that are compiled on the machine that runs them.
//!
//! A fragment begins at scans, or at whatever `DataFusion` keeps, and ends in an aggregation, a sort or a join.
//! Filters, projections and joins on the way are steps of one pipeline, through which rows pass some thousand at a
//! time:
//!
//! ```text
//! AggregateExec: mode=FinalPartitioned
//!   RepartitionExec: Hash                          QuernExec: child 0 -> filter -> build 0;
//!     AggregateExec: mode=Partial                             child 1 -> probe 0 -> map -> aggregate
//!       HashJoinExec                      ==>        DataSourceExec (child 0)
//!         RepartitionExec: Hash                      DataSourceExec (child 1)
//!           FilterExec
//!             DataSourceExec
//!         RepartitionExec: Hash
//!           DataSourceExec
//! ```
//!
//! ```
//! # use datafusion::prelude::*;
//! # use datafusion::execution::SessionStateBuilder;
//! # #[tokio::main]
//! # async fn main() -> datafusion::common::Result<()> {
//! let state = SessionStateBuilder::new().with_default_features();
//! let ctx = SessionContext::new_with_state(quern_datafusion::enable(state).build());
//! let query = "select k % 3, sum(k) from generate_series(1, 10) as t(k) group by k % 3";
//! let rows = ctx.sql(query).await?.collect().await?;
//! assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 3);
//! ctx.sql("set quern.enabled = false").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Results are those of `DataFusion`. What kernels compute in another way stays with it: comparisons and keys of
//! floats, for example. A fragment that fails, by an overflow or for want of memory, is run by the plan that it
//! replaced.

mod account;
mod ahead;
mod codec;
mod config;
mod dynamic;
mod exec;
mod expression;
mod filtered_join;
mod foreign;
mod fragment;
mod fused;
mod join_kind;
mod metrics;
mod planner;
mod reduce;
mod residual;
mod results;
mod rule;
mod run;
mod shared;
mod types;

pub use codec::{QuernCodec, aggregate_functions};
pub use config::QuernConfig;
pub use exec::QuernExec;
pub use rule::{QuernRule, replace_foreign_fragments, replace_fragments, replace_sort_of_partitions};

use std::sync::Arc;

use datafusion::execution::session_state::SessionStateBuilder;

/// Adds the rule and the settings `quern.*` to a session.
#[must_use]
pub fn enable(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_default();
    config.options_mut().extensions.insert(QuernConfig::default());
    builder.with_physical_optimizer_rule(Arc::new(QuernRule))
}
