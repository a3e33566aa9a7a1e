// SPDX-License-Identifier: Apache-2.0
//! What a join's table tells the scans of its probe side: the range of each key.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr, lit};
use quern::Job;

use crate::fragment::DynamicFilter;
use crate::run::Outcome;

/// Gives the filter of a join to the scans that have it. It is true for every row that finds a match.
pub(crate) fn publish(filter: &DynamicFilter, table: &Job) -> Outcome<()> {
    let Some(dynamic) = filter.filter.downcast_ref::<DynamicFilterPhysicalExpr>() else { return Ok(()) };
    let mut parts: Vec<Arc<dyn PhysicalExpr>> = vec![];
    for (number, (key, column)) in (0..).zip(filter.keys.iter().zip(&filter.types)) {
        let Some((least, most)) = table.summarise_key(number)?.range else { continue };
        let (Some(least), Some(most)) = (value(least, &column.data_type), value(most, &column.data_type)) else {
            continue;
        };
        parts.push(Arc::new(BinaryExpr::new(Arc::clone(key), Operator::GtEq, lit(least))));
        parts.push(Arc::new(BinaryExpr::new(Arc::clone(key), Operator::LtEq, lit(most))));
    }
    let all = parts
        .into_iter()
        .reduce(|all, part| Arc::new(BinaryExpr::new(all, Operator::And, part)) as Arc<dyn PhysicalExpr>);
    if let Some(all) = all {
        dynamic.update(all)?;
    }
    dynamic.mark_complete();
    Ok(())
}

/// Whether the range of a table's key leaves out a tenth or more of the range of the column that is compared with it. A
/// scan that knows the table's filter may then read less. True where the source does not know the column's range.
///
/// `columns`: for each key, the column of the source; none where the key is computed or comes from a table.
pub(crate) fn narrows(table: &Job, columns: &[Option<usize>], source: &Statistics) -> Outcome<bool> {
    for (key, column) in (0..).zip(columns) {
        let Some(column) = *column else { continue };
        let Some((least, most)) = table.summarise_key(key)?.range else { continue };
        let Some(known) = source.column_statistics.get(column) else { return Ok(true) };
        let bound = |value: &Precision<ScalarValue>| value.get_value().and_then(number_of);
        let (Some(begin), Some(end)) = (bound(&known.min_value), bound(&known.max_value)) else { return Ok(true) };
        let (all, left) = (end.saturating_sub(begin), most.min(end).saturating_sub(least.max(begin)));
        if left < all - all / 10 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn number_of(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(number) => number.map(i128::from),
        ScalarValue::Int16(number) => number.map(i128::from),
        ScalarValue::Int32(number) | ScalarValue::Date32(number) => number.map(i128::from),
        ScalarValue::Int64(number) => number.map(i128::from),
        ScalarValue::Decimal128(number, ..) => *number,
        _ => None,
    }
}

fn value(number: i128, data_type: &DataType) -> Option<ScalarValue> {
    Some(match data_type {
        DataType::Int8 => ScalarValue::Int8(Some(i8::try_from(number).ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(i16::try_from(number).ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(i32::try_from(number).ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(i64::try_from(number).ok()?)),
        DataType::Date32 => ScalarValue::Date32(Some(i32::try_from(number).ok()?)),
        DataType::Decimal128(digits, scale) => ScalarValue::Decimal128(Some(number), *digits, *scale),
        _ => return None,
    })
}
