// SPDX-License-Identifier: Apache-2.0
//! Groups of record batches: `SELECT shop, count(*), sum(price), max(item) FROM sales GROUP BY shop`.
//!
//! It prints
//!
//! ```text
//! Basel   2 sales  1200  pear
//! Zurich  3 sales   650  plum
//! ```

use std::error::Error;
use std::sync::Arc;
use std::thread;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use quern::{Job, Kernel, Port};

fn sales(shops: &[&str], items: &[&str], prices: &[i64]) -> Result<RecordBatch, Box<dyn Error>> {
    let columns: [(&str, ArrayRef); 3] = [
        ("shop", Arc::new(StringArray::from(shops.to_vec()))),
        ("item", Arc::new(StringArray::from(items.to_vec()))),
        ("price", Arc::new(Int64Array::from(prices.to_vec()))),
    ];
    Ok(RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, false)))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let batches = [
        sales(&["Zurich", "Basel", "Zurich"], &["pear", "pear", "fig"], &[100, 500, 250])?,
        sales(&["Basel", "Zurich"], &["fig", "plum"], &[700, 300])?,
    ];

    // A kernel is compiled once for its spec and may be used by any number of jobs. A job is one run of it.
    let job = Job::new(&Kernel::compile("aggregate keys=utf8 aggs=count_star,sum(i64),max(utf8)")?)?;
    // Columns of the batches, by number: the key, then the arguments of the functions.
    job.bind(Port::Rows, &batches[0].schema(), &[Some(0)], &[Some(2), Some(1)])?;

    // Threads belong to the program. Each has an input of its own.
    thread::scope(|scope| {
        let threads: Vec<_> = batches
            .into_iter()
            .map(|batch| {
                scope.spawn(|| {
                    let mut input = job.input(Port::Rows)?;
                    input.append(batch)?;
                    input.finish()
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })?;

    // The work between the last row and the first group. Any number of threads may call this.
    job.finalise()?;

    // Groups come in no order.
    let mut lines = vec![];
    for groups in job.output(Port::Rows)? {
        let groups = groups?;
        let (shops, items) = (groups.column(0).as_string::<i32>(), groups.column(3).as_string::<i32>());
        let (counts, sums) =
            (groups.column(1).as_primitive::<Int64Type>(), groups.column(2).as_primitive::<Int64Type>());
        for row in 0..groups.num_rows() {
            let (count, sum) = (counts.value(row), sums.value(row));
            lines.push(format!("{:7} {count} sales {sum:5}  {}", shops.value(row), items.value(row)));
        }
    }
    lines.sort();
    println!("{}", lines.join("\n"));
    Ok(())
}
