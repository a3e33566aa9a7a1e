// SPDX-License-Identifier: Apache-2.0
//! Expressions in the kernel of the aggregation that reads them, in place of a map in front of it.
//!
//! ```text
//! map in=f64,f64 out=multiply($0,$1)  [4, 5]       aggregate keys=i64 aggs=sum(f64)  [0; 6]
//!                                                  aggregate keys=i64 in=f64,f64 aggs=sum(multiply($0,$1))  [0; 4, 5]
//! ```

use crate::fragment::{Chain, MapTexts, Step};

/// The list `in`, the functions, and the columns of the pipeline that `in` stands for.
#[derive(Debug, Default)]
pub(crate) struct FusedMap {
    pub(crate) items: Vec<String>,
    pub(crate) functions: Vec<String>,
    pub(crate) columns: Vec<u32>,
}

impl FusedMap {
    /// `functions` and `columns`: the aggregates of a spec without `in`, and the columns that each reads, its filter
    /// last. None where the chain does not end in a map, where a key is one of its results, or no function reads one.
    pub(crate) fn of(chain: &Chain, keys: &[u32], functions: &[String], columns: &[Vec<u32>]) -> Option<Self> {
        let Step::Kernel { keys: map_columns, map: Some(map), .. } = chain.steps.last()? else { return None };
        let base = u32::try_from(chain.types.len() - map.results.len()).ok()?;
        if keys.iter().any(|key| *key >= base) || columns.iter().flatten().all(|column| *column < base) {
            return None;
        }
        let mut fused = Self::default();
        for (function, read) in functions.iter().zip(columns) {
            let expressions = read
                .iter()
                .map(|&column| match column.checked_sub(base) {
                    Some(result) => fused.result(map, map_columns, result as usize),
                    None => Some(fused.column(column, chain.types[column as usize].map_item()?)),
                })
                .collect::<Option<Vec<_>>>()?;
            fused.functions.push(with_expressions(function, &expressions)?);
        }
        Some(fused)
    }

    fn column(&mut self, column: u32, item: String) -> String {
        let known = self.columns.iter().zip(&self.items).position(|(have, of)| *have == column && *of == item);
        let place = known.unwrap_or_else(|| {
            self.columns.push(column);
            self.items.push(item);
            self.columns.len() - 1
        });
        format!("${place}")
    }

    /// A result of the map, with the numbers that its columns have here.
    fn result(&mut self, map: &MapTexts, map_columns: &[u32], result: usize) -> Option<String> {
        let mut text = String::new();
        let mut rest = map.results.get(result)?.as_str();
        let mut quoted = false;
        while let Some(at) = rest.find(['$', '\'']) {
            text += &rest[..at];
            let sign = &rest[at..=at];
            rest = &rest[at + 1..];
            quoted ^= sign == "'";
            if sign == "'" || quoted {
                text += sign;
                continue;
            }
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number: usize = rest[..end].parse().ok()?;
            text += &self.column(*map_columns.get(number)?, map.items.get(number)?.clone());
            rest = &rest[end..];
        }
        Some(text + rest)
    }
}

/// `sum(f64):filter` as `sum(ARGUMENT):filter(CONDITION)`.
fn with_expressions(function: &str, expressions: &[String]) -> Option<String> {
    let (call, filtered) = function.strip_suffix(":filter").map_or((function, false), |call| (call, true));
    let num_arguments = expressions.len() - usize::from(filtered);
    let (arguments, filter) = expressions.split_at(num_arguments);
    let name = call.split('(').next()?;
    let arguments = if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(",")) };
    let filter = filter.first().map_or(String::new(), |condition| format!(":filter({condition})"));
    Some(format!("{name}{arguments}{filter}"))
}
