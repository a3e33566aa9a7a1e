// SPDX-License-Identifier: Apache-2.0
//! Tables, queries and answers of TPC-H.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

pub type Outcome<T> = Result<T, Box<dyn Error>>;

pub const TABLES: [&str; 8] = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

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
