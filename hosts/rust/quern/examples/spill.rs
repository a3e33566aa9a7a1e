// SPDX-License-Identifier: Apache-2.0
//! A sort of more rows than there is memory for: `SELECT k, v FROM rows ORDER BY k DESC, v` with 16 MiB.
//!
//! It prints
//!
//! ```text
//! 2000000 rows in order
//! the first: (999999, 857142)
//! the last: (0, 1999999)
//! rows were written to files; the memory was enough
//! ```

use std::error::Error;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use quern::{Job, JobOptions, Kernel, Port, Spill};

const ROWS: i64 = 2_000_000;
const BATCH_ROWS: i64 = 50_000;
const MEMORY: u64 = 16 << 20;

/// Rows (k, v), of which two have the same k.
fn batch(first: i64) -> Result<RecordBatch, Box<dyn Error>> {
    let rows = first..first + BATCH_ROWS;
    let k: ArrayRef = Arc::new(rows.clone().map(|row| (ROWS - 1 - row) * 7 % (ROWS / 2)).collect::<Int64Array>());
    let v: ArrayRef = Arc::new(rows.collect::<Int64Array>());
    Ok(RecordBatch::try_from_iter_with_nullable([("k", k, false), ("v", v, false)])?)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Where the limit is reached, rows go to nameless files in the folder, which is one of the system's by default. The
    // files may be limited, too. A program with an account of its memory gives it as `account`: it is asked first.
    let options = JobOptions { memory_limit: MEMORY, spill: Some(Spill::default()), ..JobOptions::default() };
    let job = Job::with(&Kernel::compile("sort keys=i64:desc:out,i64:out")?, &options)?;
    job.bind(Port::Rows, &batch(0)?.schema(), &[Some(0), Some(1)], &[])?;
    let mut input = job.input(Port::Rows)?;
    for number in 0..ROWS / BATCH_ROWS {
        input.append(batch(number * BATCH_ROWS)?)?;
    }
    input.finish()?;
    job.finalise()?;

    // Batches are read from the files as they are asked for. Arrays of a batch count as memory of the job until they
    // are dropped.
    let (mut num_rows, mut in_order) = (0, true);
    let mut first: Option<(i64, i64)> = None;
    let mut last: Option<(i64, i64)> = None;
    for batch in job.output(Port::Rows)? {
        let batch = batch?;
        let column = |number: usize| batch.column(number).as_primitive::<Int64Type>().values();
        for (&k, &v) in column(0).iter().zip(column(1)) {
            in_order &= last.is_none_or(|(previous, of)| k < previous || (k == previous && v > of));
            first = first.or(Some((k, v)));
            last = Some((k, v));
        }
        num_rows += batch.num_rows();
    }
    println!("{num_rows} rows {}", if in_order { "in order" } else { "out of order" });
    println!("the first: {:?}\nthe last: {:?}", first.unwrap_or_default(), last.unwrap_or_default());
    let stats = job.stats();
    let written = if stats.spilled_rows > 0 { "rows were" } else { "nothing was" };
    let enough = if stats.peak_bytes <= MEMORY { "was" } else { "was not" };
    println!("{written} written to files; the memory {enough} enough");
    Ok(())
}
