// SPDX-License-Identifier: Apache-2.0
//! Two sessions over the same tables, of which one has Quern.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::expect_used, clippy::missing_panics_doc, missing_docs, reason = "a test may panic")]

use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringViewArray, UInt32Array,
};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use quern_datafusion::QuernConfig;

#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub partitions: usize,
    pub batch_rows: usize,
    /// Bytes of a memory pool; 0: no limit.
    pub pool_bytes: usize,
    pub fall_back: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self { partitions: 2, batch_rows: 8192, pool_bytes: 0, fall_back: false }
    }
}

/// Rows of each table.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    pub a: usize,
    pub b: usize,
    pub c: usize,
}

/// Numbers that look random, the same in every run (Knuth's MMIX generator).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % bound).unwrap_or(0)
    }

    fn column<T, A: FromIterator<Option<T>>>(&mut self, rows: usize, bound: u64, make: impl Fn(i64) -> T) -> A {
        (0..rows).map(|_| (self.below(8) != 0).then(|| make(self.below(bound)))).collect()
    }

    fn words(&mut self, rows: usize, bound: u64) -> ArrayRef {
        let words: Vec<Option<String>> = (0..rows)
            .map(|_| {
                let word = self.below(bound);
                // Some are longer than what a view holds by itself.
                let long = if word % 3 == 0 { "-and-more-than-twelve-bytes" } else { "" };
                (self.below(8) != 0).then(|| format!("w{word}{long}"))
            })
            .collect();
        Arc::new(StringViewArray::from_iter(words))
    }

    fn decimals(&mut self, rows: usize) -> ArrayRef {
        let values: Decimal128Array = self.column(rows, 300, |value| i128::from(value) - 100);
        Arc::new(values.with_precision_and_scale(15, 2).expect("a type"))
    }
}

fn narrow<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}

fn batch(random: &mut Random, table: char, rows: usize) -> RecordBatch {
    let x: Int64Array = random.column(rows, 50, |value| value);
    let k: Int32Array = random.column(rows, 90, narrow);
    let day: Date32Array = random.column(rows, 1200, |value| narrow(value + 8800));
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let f: Float64Array = random.column(rows, 1000, |value| value as f64 / 8.0);
    let columns: Vec<(&str, ArrayRef)> = match table {
        'a' => vec![
            ("k", Arc::new(k)),
            ("x", Arc::new(x)),
            ("s", random.words(rows, 12)),
            ("m", random.decimals(rows)),
            ("day", Arc::new(day)),
            ("f", Arc::new(f)),
            ("b8", Arc::new(random.column::<_, Int8Array>(rows, 3, narrow))),
            ("i16", Arc::new(random.column::<_, Int16Array>(rows, 4, narrow))),
            ("u32", Arc::new(random.column::<_, UInt32Array>(rows, 3, narrow))),
        ],
        'b' => vec![("k", Arc::new(k)), ("y", Arc::new(x)), ("s", random.words(rows, 12))],
        _ => vec![("y", Arc::new(x)), ("d", random.decimals(rows))],
    };
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
        .expect("columns of one length")
}

/// Without Quern, and with it.
pub async fn sessions(setting: Setting, rows: Rows) -> (SessionContext, SessionContext) {
    let make = |with_quern: bool| {
        let config =
            SessionConfig::new().with_target_partitions(setting.partitions).with_batch_size(setting.batch_rows);
        let mut builder = SessionStateBuilder::new().with_default_features().with_config(config);
        if setting.pool_bytes != 0 {
            let pool = Arc::new(FairSpillPool::new(setting.pool_bytes));
            let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build().expect("an environment");
            builder = builder.with_runtime_env(Arc::new(runtime));
        }
        if with_quern {
            builder = quern_datafusion::enable(builder);
            if let Some(config) = builder.config()
                && let Some(settings) = config.options_mut().extensions.get_mut::<QuernConfig>()
            {
                settings.fall_back = setting.fall_back;
            }
        }
        let context = SessionContext::new_with_state(builder.build());
        let mut random = Random(7);
        for (table, num_rows) in [('a', rows.a), ('b', rows.b), ('c', rows.c)] {
            let whole = batch(&mut random, table, num_rows);
            // Partitions of unequal sizes, and batches as the scan would give them.
            let cut = num_rows / 3;
            let parts = [whole.slice(0, cut), whole.slice(cut, num_rows - cut)];
            let parts = parts.map(|part| batches(&part, setting.batch_rows)).to_vec();
            let memory = MemTable::try_new(whole.schema(), parts).expect("a table");
            context.register_table(table.to_string(), Arc::new(memory)).expect("a table");
        }
        context
    };
    (make(false), make(true))
}

fn batches(rows: &RecordBatch, most: usize) -> Vec<RecordBatch> {
    (0..rows.num_rows()).step_by(most).map(|at| rows.slice(at, most.min(rows.num_rows() - at))).collect()
}

/// The rows of an answer, sorted unless the query says an order. Floats are compared by nine digits.
pub async fn answer(context: &SessionContext, query: &str) -> Result<Vec<String>> {
    texts(query, &context.sql(query).await?.collect().await?)
}

/// The same, of rows that are there.
pub fn texts(query: &str, batches: &[RecordBatch]) -> Result<Vec<String>> {
    let mut rows = vec![];
    let options = FormatOptions::default().with_null("null");
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            let values: Vec<_> = batch
                .columns()
                .iter()
                .zip(&columns)
                .map(|(column, texts)| rounded(column.data_type(), texts.value(row).to_string()))
                .collect();
            rows.push(values.join("|"));
        }
    }
    if !query.contains("order by") {
        rows.sort();
    }
    Ok(rows)
}

fn rounded(data_type: &DataType, text: String) -> String {
    match text.parse::<f64>() {
        Ok(value) if *data_type == DataType::Float64 => format!("{value:.9e}"),
        _ => text,
    }
}

pub fn count_nodes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    usize::from(plan.name() == "QuernExec") + plan.children().into_iter().map(count_nodes).sum::<usize>()
}

/// How many nodes of a query's plan are Quern's.
pub async fn nodes(context: &SessionContext, query: &str) -> usize {
    let plan = context.sql(query).await.expect("a plan").create_physical_plan().await.expect("a physical plan");
    count_nodes(&plan)
}
