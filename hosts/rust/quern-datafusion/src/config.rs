// SPDX-License-Identifier: Apache-2.0
//! Settings of a session.

use std::any::Any;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{DataFusionError, Result};

/// Which operators Quern may replace: `SET quern.enabled = false`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct QuernConfig {
    /// Whether any are.
    pub enabled: bool,
    /// Hash joins.
    pub joins: bool,
    /// Aggregations.
    pub aggregates: bool,
    /// Sorts.
    pub sorts: bool,
    /// Whether a fragment that fails in Quern runs as the plan that it replaced. Tests turn it off.
    pub fall_back: bool,
}

impl Default for QuernConfig {
    fn default() -> Self {
        Self { enabled: true, joins: true, aggregates: true, sorts: true, fall_back: true }
    }
}

impl ConfigExtension for QuernConfig {
    const PREFIX: &'static str = "quern";
}

impl ExtensionOptions for QuernConfig {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let setting = match key {
            "enabled" => &mut self.enabled,
            "joins" => &mut self.joins,
            "aggregates" => &mut self.aggregates,
            "sorts" => &mut self.sorts,
            "fall_back" => &mut self.fall_back,
            _ => {
                return Err(DataFusionError::Configuration(format!(
                    "unknown setting quern.{key}; accepted: enabled, joins, aggregates, sorts, fall_back"
                )));
            }
        };
        *setting = match value.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" => true,
            "false" | "f" | "0" => false,
            _ => {
                return Err(DataFusionError::Configuration(format!(
                    "bad value of quern.{key}: {value}; accepted: true, false"
                )));
            }
        };
        Ok(())
    }

    /// With the prefix: schedulers send settings on by the names that they find here.
    fn entries(&self) -> Vec<ConfigEntry> {
        let entry = |name: &str, value: bool, description| ConfigEntry {
            key: format!("{}.{name}", Self::PREFIX),
            value: Some(value.to_string()),
            description,
        };
        vec![
            entry("enabled", self.enabled, "Whether Quern replaces anything"),
            entry("joins", self.joins, "Whether it replaces hash joins"),
            entry("aggregates", self.aggregates, "Whether it replaces aggregations"),
            entry("sorts", self.sorts, "Whether it replaces sorts"),
            entry("fall_back", self.fall_back, "Whether a fragment that fails runs as the plan that it replaced"),
        ]
    }
}
