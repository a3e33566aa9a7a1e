// SPDX-License-Identifier: Apache-2.0
//! The order that a query says for its rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

/// The order of a query's rows.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// The keys that can be computed from the rows, first ones first.
    known: Vec<Arc<dyn PhysicalExpr>>,
    /// The query has keys that its rows do not show.
    pub has_others: bool,
    /// Not all rows come out, so that rows of equal keys may be chosen in more than one way.
    pub is_limited: bool,
}

impl Order {
    /// The order of a plan that is not optimized yet.
    pub fn of(plan: &LogicalPlan) -> Self {
        let mut order = Self::default();
        // What stands above the sort, from the top.
        let mut above = vec![];
        let mut below = plan;
        loop {
            match below {
                LogicalPlan::Limit(limit) => {
                    order.is_limited = true;
                    below = &limit.input;
                }
                LogicalPlan::Projection(projection) => {
                    above.push(projection);
                    below = &projection.input;
                }
                LogicalPlan::Sort(sort) => {
                    order.is_limited |= sort.fetch.is_some();
                    for part in &sort.expr {
                        let Some(key) = key(&part.expr, sort.input.schema(), &above) else {
                            order.has_others = true;
                            break;
                        };
                        order.known.push(key);
                    }
                    return order;
                }
                _ => return order,
            }
        }
    }

    /// The keys of rows.
    pub fn keys(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.known.iter().map(|key| key.evaluate(rows)?.into_array(rows.num_rows())).collect()
    }
}

/// A key as an expression over the query's rows, where projections above the sort keep it.
fn key(
    expression: &Expr,
    schema: &DFSchema,
    above: &[&datafusion::logical_expr::Projection],
) -> Option<Arc<dyn PhysicalExpr>> {
    if above.is_empty() {
        let (properties, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        return create_physical_expr(expression, schema, &properties, &context).ok();
    }
    let mut wanted = expression.clone();
    let mut place = None;
    for projection in above.iter().rev() {
        let found = projection.expr.iter().position(|output| output.clone().unalias() == wanted)?;
        let (table, field) = projection.schema.qualified_field(found);
        wanted = Expr::Column((table, field).into());
        place = Some((found, field.name().clone()));
    }
    let (number, name) = place?;
    Some(Arc::new(datafusion::physical_expr::expressions::Column::new(&name, number)))
}
