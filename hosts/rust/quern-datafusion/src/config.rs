// SPDX-License-Identifier: Apache-2.0
//! Settings of a session.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;

extensions_options! {
    /// Which operators Quern may replace: `SET quern.enabled = false`.
    pub struct QuernConfig {
        /// Whether any are.
        pub enabled: bool, default = true
        /// Hash joins.
        pub joins: bool, default = true
        /// Aggregations.
        pub aggregates: bool, default = true
        /// Sorts.
        pub sorts: bool, default = true
        /// Whether a fragment that fails in Quern runs as the plan that it replaced. Tests turn it off.
        pub fall_back: bool, default = true
    }
}

impl ConfigExtension for QuernConfig {
    const PREFIX: &'static str = "quern";
}
