// SPDX-License-Identifier: Apache-2.0
//! Two tables joined on the way into an aggregation, by a pipeline:
//!
//! `SELECT category, sum(price * quantity) FROM sales JOIN items USING (item) WHERE quantity > 0 GROUP BY category`
//!
//! It prints
//!
//! ```text
//! category 10: 1900
//! category 20: 600
//! ```

use std::error::Error;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use quern::{Job, Kernel, Pipeline, Port};

fn table(columns: &[(&str, &[i64])]) -> Result<RecordBatch, Box<dyn Error>> {
    let columns = columns.iter().map(|(name, values)| {
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        (*name, column, false)
    });
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let items = table(&[("item", &[1, 2, 3]), ("category", &[10, 10, 20])])?;
    let sales =
        table(&[("item", &[1, 3, 2, 1, 9]), ("price", &[500, 300, 200, 700, 100]), ("quantity", &[1, 2, 7, 0, 5])])?;

    // The table of the join: items by their number, with their category. In a spec the rows that probe it have a
    // payload too, here the product.
    let categories = Job::new(&Kernel::compile("join.inner keys=i64 build=i64 probe=i64")?)?;
    categories.bind(Port::Build, &items.schema(), &[Some(0)], &[Some(1)])?;
    let mut build = categories.input(Port::Build)?;
    build.append(items)?;
    build.finish()?;
    categories.finalise()?;

    // The steps in front of it, and the aggregation behind it.
    let sold = Job::new(&Kernel::compile("filter i64 > 0")?)?;
    let product = Job::new(&Kernel::compile("map in=i64,i64 out=multiply_checked($0,$1)")?)?;
    let sums = Job::new(&Kernel::compile("aggregate keys=i64 aggs=sum(i64)")?)?;
    let group = Schema::new(vec![
        Field::new("category", DataType::Int64, false),
        Field::new("product", DataType::Int64, false),
    ]);
    sums.bind(Port::Rows, &group, &[Some(0)], &[Some(1)])?;

    // Columns of a sale: 0 item, 1 price, 2 quantity; behind the map: 3 the product; behind the probe: 0 the product,
    // 1 the category. Rows pass all steps some thousand at a time, while they are in the cache.
    let mut pipeline = Pipeline::new("i64,i64,i64");
    pipeline.through(&sold, &[2], &[]).through(&product, &[1, 2], &[]).through(&categories, &[0], &[3]);
    let mut input = pipeline.into_job(&sums, Port::Rows, &[1], &[0])?;
    input.append(sales)?;
    input.finish()?;
    sums.finalise()?;

    let mut groups = vec![];
    for batch in sums.output(Port::Rows)? {
        let batch = batch?;
        let column = |number: usize| batch.column(number).as_primitive::<Int64Type>().values();
        groups.extend(column(0).iter().copied().zip(column(1).iter().copied()));
    }
    groups.sort_unstable();
    for (category, sum) in groups {
        println!("category {category}: {sum}");
    }
    Ok(())
}
