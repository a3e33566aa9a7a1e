// SPDX-License-Identifier: Apache-2.0
//! Inner joins whose filters kernels cannot test: the join is replaced, and its rows pass a filter of `DataFusion`'s.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};

use crate::residual::is_comparison;

/// A join, and what its rows pass.
pub(crate) struct FilteredJoin {
    /// With comparisons at most as its filter. It has no limit.
    pub(crate) join: Arc<dyn ExecutionPlan>,
    /// Over the columns of the join.
    predicate: Arc<dyn PhysicalExpr>,
    /// The first columns of the join are those of the plan.
    num_columns: usize,
    fetch: Option<usize>,
}

impl FilteredJoin {
    /// None for plans that are no such joins.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        let Some(filter) = join.filter().filter(|_| *join.join_type() == JoinType::Inner) else { return Ok(None) };
        let (tested, others): (Vec<_>, Vec<_>) = split_conjunction(filter.expression())
            .into_iter()
            .map(Arc::clone)
            .partition(|part| is_comparison(part, filter));
        if others.is_empty() {
            return Ok(None);
        }
        let num_left = join.left().schema().fields().len();
        let num_right = join.right().schema().fields().len();
        let mut columns = join.projection.as_ref().map_or((0..num_left + num_right).collect(), |some| some.to_vec());
        let num_columns = columns.len();
        let mut number_of = |index: &ColumnIndex| {
            let column = if index.side == JoinSide::Left { index.index } else { num_left + index.index };
            columns.iter().position(|have| *have == column).unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            })
        };
        let numbers: Vec<_> = filter.column_indices().iter().map(&mut number_of).collect();
        let predicate = conjunction(others).transform_up(|node| {
            let column = node.downcast_ref::<Column>();
            let moved = column.and_then(|column| Some(Column::new(column.name(), *numbers.get(column.index())?)));
            Ok(match moved {
                Some(column) => Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>),
                None => Transformed::no(node),
            })
        })?;
        let tested = (!tested.is_empty()).then(|| {
            JoinFilter::new(conjunction(tested), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
        });
        let builder = join.builder().with_filter(tested).with_projection(Some(columns)).with_fetch(None);
        let join_alone = builder.build_exec()?;
        Ok(Some(Self { join: join_alone, predicate: predicate.data, num_columns, fetch: join.fetch() }))
    }

    /// The filter above what has replaced the join.
    pub(crate) fn above(self, replaced: Arc<dyn ExecutionPlan>, batch_rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
        let filter = FilterExecBuilder::new(self.predicate, replaced)
            .apply_projection(Some((0..self.num_columns).collect()))?
            .with_batch_size(batch_rows)
            .with_fetch(self.fetch)
            .build()?;
        Ok(Arc::new(filter))
    }
}
