// SPDX-License-Identifier: Apache-2.0
//! Columns of a plan from columns of a job's result.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array,
    make_array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Decimal128Type, DecimalType, Field, Float64Type, Int64Type, SchemaRef, UInt64Type};
use datafusion::common::{DataFusionError, Result};

use crate::fragment::OutputColumn;

/// Makes the batch of a plan. Nothing is copied, except averages and sums of counts.
pub(crate) fn batch(schema: &SchemaRef, rows: &RecordBatch, columns: &[OutputColumn]) -> Result<RecordBatch> {
    let arrays = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, column)| match column {
            OutputColumn::Same(number) => relabelled(rows.column(*number), field),
            OutputColumn::Count(number) => count(rows.column(*number)),
            OutputColumn::Average { sum, count } => average(rows.column(*sum), rows.column(*count), field),
        })
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?)
}

/// A copy, for results that the parent may keep: until they are dropped, the arrays of a job count as its memory.
pub(crate) fn detached(rows: &RecordBatch) -> Result<RecordBatch> {
    let all = UInt64Array::from_iter_values(0..rows.num_rows() as u64);
    let copied = rows
        .columns()
        .iter()
        .map(|column| {
            let copy = take(column, &all, None)?;
            // Copies of views still point to the same bytes.
            Ok(match copy.data_type() {
                DataType::Utf8View => Arc::new(copy.as_string_view().gc()) as ArrayRef,
                DataType::BinaryView => Arc::new(copy.as_binary_view().gc()) as ArrayRef,
                _ => copy,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), copied, &options)?)
}

/// The same values under the type of the plan, which may differ in the digits of a decimal.
fn relabelled(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if array.data_type() == field.data_type() {
        return Ok(Arc::clone(array));
    }
    if let (DataType::Decimal128(_, have), DataType::Decimal128(digits, scale)) = (array.data_type(), field.data_type())
        && have == scale
    {
        let data = array.to_data().into_builder().data_type(DataType::Decimal128(*digits, *scale)).build()?;
        return Ok(make_array(data));
    }
    // Counts, as averages in the making have them.
    if (array.data_type(), field.data_type()) == (&DataType::Int64, &DataType::UInt64) {
        return Ok(make_array(array.to_data().into_builder().data_type(DataType::UInt64).build()?));
    }
    Err(DataFusionError::Internal(format!(
        "result of Quern of type {}; accepted: {} for column {}",
        array.data_type(),
        field.data_type(),
        field.name()
    )))
}

fn count(sums: &ArrayRef) -> Result<ArrayRef> {
    let counts: Int64Array = match sums.data_type() {
        DataType::Int64 => sums.as_primitive::<Int64Type>().iter().map(|sum| Some(sum.unwrap_or(0))).collect(),
        other => return Err(DataFusionError::Internal(format!("sum of counts of type {other}; accepted: Int64"))),
    };
    Ok(Arc::new(counts))
}

/// Sums divided by counts. Decimals get more digits behind the point, and are cut there, as `DataFusion` does.
fn average(sums: &ArrayRef, counts: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let counts = counts_of(counts)?;
    match (sums.data_type(), field.data_type()) {
        (DataType::Float64, DataType::Float64) => {
            let sums = sums.as_primitive::<Float64Type>();
            let averages: Float64Array = sums
                .iter()
                .zip(counts)
                .map(|(sum, count)| {
                    #[expect(clippy::cast_precision_loss, reason = "as DataFusion divides")]
                    sum.filter(|_| count != 0).map(|sum| sum / count as f64)
                })
                .collect();
            Ok(Arc::new(averages))
        }
        (DataType::Decimal128(_, scale), DataType::Decimal128(digits, wanted)) => {
            let factor = u32::try_from(i16::from(*wanted) - i16::from(*scale))
                .ok()
                .and_then(|zeros| 10_i128.checked_pow(zeros))
                .ok_or_else(|| DataFusionError::Execution("scale of an average".to_owned()))?;
            let overflow = || DataFusionError::Execution("Arithmetic Overflow in AvgAccumulator".to_owned());
            let sums = sums.as_primitive::<Decimal128Type>();
            let averages = sums
                .iter()
                .zip(counts)
                .map(|(sum, count)| match sum.filter(|_| count != 0) {
                    Some(sum) => {
                        let average = sum.checked_mul(factor).ok_or_else(overflow)? / i128::from(count);
                        Decimal128Type::validate_decimal_precision(average, *digits, *wanted)
                            .map_err(|_| overflow())?;
                        Ok(Some(average))
                    }
                    None => Ok(None),
                })
                .collect::<Result<Decimal128Array>>()?;
            Ok(Arc::new(averages.with_precision_and_scale(*digits, *wanted)?))
        }
        (from, to) => Err(DataFusionError::Internal(format!("average of {from} as {to}"))),
    }
}

fn counts_of(counts: &ArrayRef) -> Result<Vec<i64>> {
    Ok(match counts.data_type() {
        DataType::Int64 => counts.as_primitive::<Int64Type>().iter().map(Option::unwrap_or_default).collect(),
        DataType::UInt64 => counts
            .as_primitive::<UInt64Type>()
            .iter()
            .map(|count| i64::try_from(count.unwrap_or(0)).unwrap_or(i64::MAX))
            .collect(),
        other => return Err(DataFusionError::Internal(format!("counts of type {other}"))),
    })
}
