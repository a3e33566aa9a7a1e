// SPDX-License-Identifier: Apache-2.0
//! What programs that run TPC-H have in common: arguments, tables, queries, answers, ratios.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

pub const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// The arguments of a program: `--name value`, and flags, which have no value.
pub struct Arguments(HashMap<String, String>);

impl Arguments {
    pub fn of_program(flags: &[&str]) -> Outcome<Self> {
        let mut values = HashMap::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let is_flag = flags.contains(&name.as_str());
            let value = if is_flag { String::new() } else { arguments.next().ok_or(format!("no value of {name}"))? };
            values.insert(name, value);
        }
        Ok(Self(values))
    }

    pub fn has(&self, flag: &str) -> bool {
        self.0.contains_key(flag)
    }

    pub fn number<N: FromStr>(&self, name: &str, default: N) -> Result<N, N::Err> {
        self.0.get(name).map_or(Ok(default), |value| value.parse())
    }

    pub fn path(&self, name: &str) -> Outcome<PathBuf> {
        Ok(self.0.get(name).ok_or(format!("no {name}"))?.into())
    }

    /// The numbers of the queries that `--only` names; all 22 without it.
    pub fn queries(&self) -> Outcome<Vec<u32>> {
        let Some(list) = self.0.get("--only") else { return Ok((1..=22).collect()) };
        Ok(list.split(',').map(str::parse).collect::<Result<_, _>>()?)
    }
}

/// Prints the geometric mean of the queries' ratios, and the smallest one.
pub fn print_mean(ratios: &[f64]) {
    if ratios.is_empty() {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 22")]
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    println!("geometric mean {mean:.2}, least {:.2}", ratios.iter().copied().fold(f64::MAX, f64::min));
}

/// The text of a query, without comments.
pub fn text_of(file: &Path) -> Outcome<String> {
    let lines = std::fs::read_to_string(file)?;
    let text: Vec<_> = lines.lines().filter(|line| !line.starts_with("--")).collect();
    Ok(text.join("\n").replace(":scale", "1").trim().trim_end_matches(';').to_owned())
}

/// Rows as texts; floats by ten digits, since their sums depend on the order of rows.
pub fn rows_of(batches: &[RecordBatch]) -> Outcome<Vec<String>> {
    let options = FormatOptions::default().with_null("null");
    let mut rows = vec![];
    for batch in batches {
        let columns = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let mut text = String::new();
            for (column, format) in batch.columns().iter().zip(&columns) {
                if *column.data_type() == DataType::Float64 && column.is_valid(row) {
                    write!(text, "{:.9e}|", column.as_primitive::<Float64Type>().value(row))?;
                } else {
                    write!(text, "{}|", format.value(row))?;
                }
            }
            rows.push(text);
        }
    }
    rows.sort();
    Ok(rows)
}
