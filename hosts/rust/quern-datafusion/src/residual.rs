// SPDX-License-Identifier: Apache-2.0
//! Filters of joins that kernels test before a pair comes out: comparisons of the one side with the other.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::JoinSide;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::joins::utils::JoinFilter;

use crate::fragment::Chain;
use crate::types::{self, ColumnType};

/// A comparison of a probe column with a build column, by their numbers in the pipelines.
pub(crate) struct Residual {
    pub(crate) item: String,
    pub(crate) probe: u32,
    pub(crate) build: u32,
}

/// A comparison of a value of the one side with one of the other.
struct Comparison {
    op: Operator,
    left: Operand,
    right: Operand,
}

/// An expression over the columns of one side.
struct Operand {
    side: JoinSide,
    expression: Arc<dyn PhysicalExpr>,
}

/// A filter as comparisons, whose values are computed on each side; none where it is anything else.
pub(crate) fn residual(
    filter: Option<&JoinFilter>,
    build: &mut Chain,
    probe: &mut Chain,
    build_side: JoinSide,
) -> Option<Vec<Residual>> {
    let Some(filter) = filter else { return Some(vec![]) };
    let (mut of_build, mut of_probe, mut names) = (vec![], vec![], vec![]);
    for part in split_conjunction(filter.expression()) {
        let Comparison { op, left, right } = comparison(part, filter)?;
        let (op, probe, build) = if right.side == build_side { (op, left, right) } else { (op.swap()?, right, left) };
        names.push(name(op)?);
        of_probe.push(probe.expression);
        of_build.push(build.expression);
    }
    if names.len() > 16 {
        return None;
    }
    let (of_build, of_probe) = (build.compute(&of_build)?, probe.compute(&of_probe)?);
    let mut parts = vec![];
    for ((name, &build_number), &probe_number) in names.into_iter().zip(&of_build).zip(&of_probe) {
        let (of_build, of_probe) = (&build.types[build_number as usize], &probe.types[probe_number as usize]);
        let either = ColumnType { nullable: of_probe.nullable || of_build.nullable, ..of_probe.clone() };
        if of_build.data_type != of_probe.data_type {
            return None;
        }
        parts.push(Residual { item: format!("{}:{name}", either.item()?), probe: probe_number, build: build_number });
    }
    Some(parts)
}

/// Whether kernels test a part of a filter.
pub(crate) fn is_comparison(part: &Arc<dyn PhysicalExpr>, filter: &JoinFilter) -> bool {
    comparison(part, filter).is_some()
}

fn comparison(part: &Arc<dyn PhysicalExpr>, filter: &JoinFilter) -> Option<Comparison> {
    let binary = part.downcast_ref::<BinaryExpr>()?;
    name(*binary.op())?;
    let (left, right) = (operand(binary.left(), filter)?, operand(binary.right(), filter)?);
    let data_type = binary.left().data_type(filter.schema()).ok()?;
    let fixed = !types::is_string(&data_type) && !matches!(data_type, DataType::FixedSizeBinary(_));
    let alike = types::compares_alike(&data_type) && binary.right().data_type(filter.schema()).ok()? == data_type;
    (fixed && alike && left.side != right.side).then_some(Comparison { op: *binary.op(), left, right })
}

fn operand(expression: &Arc<dyn PhysicalExpr>, filter: &JoinFilter) -> Option<Operand> {
    let place = |column: &Column| filter.column_indices().get(column.index());
    let sides: Vec<_> =
        collect_columns(expression).iter().map(|column| Some(place(column)?.side)).collect::<Option<_>>()?;
    let side = *sides.first()?;
    if sides.iter().any(|other| *other != side) || !cannot_fail(expression, filter.schema()) {
        return None;
    }
    let of_side = Arc::clone(expression).transform_up(|node| {
        let index = node.downcast_ref::<Column>().and_then(place).map(|place| place.index);
        Ok(match index {
            Some(index) => Transformed::yes(Arc::new(Column::new("", index)) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(node),
        })
    });
    Some(Operand { side, expression: of_side.ok()?.data })
}

/// Whether an expression has a value in every row. It is computed for rows of which there is no pair, too.
fn cannot_fail(expression: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if expression.is::<Column>() || expression.is::<Literal>() {
        return true;
    }
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        let wraps = expression.data_type(schema).is_ok_and(|data_type| types::is_integer(&data_type));
        let known = matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply);
        return wraps && known && [binary.left(), binary.right()].iter().all(|side| cannot_fail(side, schema));
    }
    let Some(cast) = expression.downcast_ref::<CastExpr>() else { return false };
    let Ok(from) = cast.expr().data_type(schema) else { return false };
    let to = cast.cast_type();
    let widens = from.is_integer() && to.is_integer() && to.primitive_width() > from.primitive_width();
    widens && (from.is_unsigned_integer() || to.is_signed_integer()) && cannot_fail(cast.expr(), schema)
}

/// The name of a comparison in a spec.
fn name(op: Operator) -> Option<&'static str> {
    Some(match op {
        Operator::Lt => "lt",
        Operator::LtEq => "le",
        Operator::Gt => "gt",
        Operator::GtEq => "ge",
        Operator::NotEq => "ne",
        Operator::Eq => "eq",
        _ => return None,
    })
}
