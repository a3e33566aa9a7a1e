// SPDX-License-Identifier: Apache-2.0
//! A session as the runner of sqllogictest files wants it, which notes what it answers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::common::collect;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion_sqllogictest::{
    DFColumnType, DFOutput, DFSqlLogicTestError, TestContext, convert_batches, convert_schema_to_types, is_spark_path,
};
use quern_datafusion::QuernConfig;
use sqllogictest::{AsyncDB, DBOutput};

use crate::order::Order;

/// Settings of both sessions; those of the test context where there are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setting {
    pub partitions: Option<usize>,
    pub batch_rows: Option<usize>,
}

/// What a session answers to a statement.
#[derive(Debug)]
pub struct Answer {
    /// It shows plans or times, which differ by design.
    pub is_explain: bool,
    /// Nodes of the plan that are Quern's.
    pub nodes: usize,
    /// The error of the kernels, where it took the plan that was replaced to get the result.
    pub fell_back: Option<String>,
    pub result: Result<Table, String>,
}

/// The rows of an answer as texts.
#[derive(Debug)]
pub struct Table {
    pub types: Vec<DataType>,
    pub rows: Vec<Vec<String>>,
    pub order: Order,
    /// For each row its values of the keys by which the query orders, as far as they are known.
    pub keys: Vec<Vec<String>>,
}

/// Answers in the order of their statements.
pub type Log = Arc<Mutex<Vec<Answer>>>;

/// A session of a file.
pub struct Engine {
    context: SessionContext,
    is_spark: bool,
    log: Log,
}

impl Engine {
    pub fn new(context: SessionContext, file: &Path, log: Log) -> Self {
        Self { context, is_spark: is_spark_path(file), log }
    }

    async fn answer(&self, sql: &str, answer: &mut Answer) -> Result<DFOutput, DFSqlLogicTestError> {
        answer.is_explain = sql.trim_start().to_ascii_lowercase().starts_with("explain");
        let frame = self.context.sql(sql).await?;
        let logical = frame.logical_plan().clone();
        answer.is_explain |= matches!(logical, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        answer.nodes = count_nodes(&plan);
        let schema = plan.schema();
        let stream = execute_stream(plan, task)?;
        let types = convert_schema_to_types(stream.schema().fields());
        let batches = collect(stream).await?;
        answer.result = Ok(table(&schema, &batches, Order::of(&logical))?);
        let rows = convert_batches(&schema, batches, self.is_spark)?;
        Ok(if rows.is_empty() && types.is_empty() {
            DBOutput::StatementComplete(0)
        } else {
            DBOutput::Rows { types, rows }
        })
    }
}

#[async_trait]
impl AsyncDB for Engine {
    type Error = DFSqlLogicTestError;
    type ColumnType = DFColumnType;

    async fn run(&mut self, sql: &str) -> Result<DFOutput, DFSqlLogicTestError> {
        let mut answer = Answer { is_explain: false, nodes: 0, fell_back: None, result: Err("no answer".to_owned()) };
        let mut output = self.answer(sql, &mut answer).await;
        // Errors of kernels are such of others for DataFusion.
        let failure = output.as_ref().err().map(ToString::to_string).filter(|text| text.contains("External error"));
        if let Some(failure) = failure.filter(|_| answer.nodes != 0) {
            self.context.sql("set quern.fall_back = true").await?;
            output = self.answer(sql, &mut answer).await;
            self.context.sql("set quern.fall_back = false").await?;
            answer.fell_back = output.is_ok().then_some(failure);
        }
        if let Err(error) = &output {
            answer.result = Err(error.to_string());
        }
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        output
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &'static str {
        "DataFusion"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The session of a file as `DataFusion`'s own tests make it, with Quern or without; none where the crate leaves the
/// file out.
pub async fn session(file: &Path, setting: Setting, with_quern: bool) -> Option<SessionContext> {
    let context = TestContext::try_new_for_test_file(file).await?;
    let mut builder = SessionStateBuilder::new_from_existing(context.session_ctx().state());
    if with_quern {
        builder = quern_datafusion::enable(builder);
    }
    let options = builder.config().get_or_insert_default().options_mut();
    if let Some(settings) = options.extensions.get_mut::<QuernConfig>() {
        settings.fall_back = false;
    }
    if let Some(partitions) = setting.partitions {
        options.execution.target_partitions = partitions;
    }
    if let Some(rows) = setting.batch_rows {
        options.execution.batch_size = datafusion::common::config::ConfigNonZeroUsize::try_new(rows).ok()?;
    }
    Some(SessionContext::new_with_state(builder.build()))
}

fn count_nodes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    usize::from(plan.name() == "QuernExec") + plan.children().into_iter().map(count_nodes).sum::<usize>()
}

fn table(schema: &SchemaRef, batches: &[RecordBatch], order: Order) -> Result<Table> {
    let types = schema.fields().iter().map(|field| field.data_type().clone()).collect();
    let mut table = Table { types, rows: vec![], keys: vec![], order };
    for batch in batches {
        table.rows.extend(texts(batch.columns().iter().map(AsRef::as_ref))?);
        let keys = table.order.keys(batch)?;
        table.keys.extend(if keys.is_empty() {
            vec![vec![]; batch.num_rows()]
        } else {
            texts(keys.iter().map(AsRef::as_ref))?
        });
    }
    Ok(table)
}

/// The values of columns, row by row.
fn texts<'a>(columns: impl Iterator<Item = &'a dyn Array>) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default().with_null("NULL").with_display_error(true);
    let mut rows: Vec<Vec<String>> = vec![];
    for column in columns {
        let formatter = ArrayFormatter::try_new(column, &options)?;
        rows.resize(rows.len().max(column.len()), vec![]);
        for (row, texts) in rows.iter_mut().enumerate() {
            texts.push(match column.data_type() {
                DataType::Float64 if column.is_valid(row) => number(column.as_primitive::<Float64Type>().value(row)),
                DataType::Float32 if column.is_valid(row) => {
                    format!("{:.4e}", column.as_primitive::<Float32Type>().value(row))
                }
                _ => formatter.value(row).try_to_string().map_err(DataFusionError::from)?,
            });
        }
    }
    Ok(rows)
}

/// Sums of floats depend on the order of rows, so that not all digits count.
fn number(value: f64) -> String {
    format!("{value:.9e}")
}
