// SPDX-License-Identifier: Apache-2.0
//! Names of Arrow types in kernel specs.

use arrow::datatypes::DataType;

/// The name of a type in specs. Decimals of 32 and 64 bits are left to `DataFusion`: its sums of them stay as narrow,
/// while Quern's have 128 bits.
pub(crate) fn name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Decimal32(..) | DataType::Decimal64(..) => None,
        other => quern::type_name(other),
    }
}

/// A column's type and whether it may hold nulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnType {
    pub(crate) data_type: DataType,
    pub(crate) nullable: bool,
}

impl ColumnType {
    pub(crate) fn new(data_type: &DataType, nullable: bool) -> Self {
        Self { data_type: data_type.clone(), nullable }
    }

    /// As an item of a spec, `i64:nullable`; none for types that kernels do not have.
    pub(crate) fn item(&self) -> Option<String> {
        Some(with_nullable(name(&self.data_type)?, self.nullable))
    }

    /// The same with the digits of a decimal, as maps want it.
    pub(crate) fn map_item(&self) -> Option<String> {
        Some(with_nullable(map_name(&self.data_type)?, self.nullable))
    }
}

fn with_nullable(name: String, nullable: bool) -> String {
    if nullable { name + ":nullable" } else { name }
}

/// The name of a type with the digits and the scale of a decimal.
pub(crate) fn map_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Decimal128(digits, scale @ 0..) => Some(format!("decimal128({digits},{scale})")),
        other => name(other),
    }
}

/// Whether kernels compare values of the type as `DataFusion` does: it orders floats by their bits (-0 below 0, and NaN
/// by its sign), Quern by their values.
pub(crate) fn compares_alike(data_type: &DataType) -> bool {
    name(data_type).is_some() && !is_float(data_type)
}

pub(crate) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

pub(crate) fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer()
}

pub(crate) fn is_string(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    )
}

/// The type that a plan wants of a value whose type differs in the digits of a decimal at most; none for others.
pub(crate) fn relabelled(have: &DataType, wanted: &DataType) -> Option<DataType> {
    match (have, wanted) {
        (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) if a == b => Some(wanted.clone()),
        (have, wanted) if have == wanted => Some(wanted.clone()),
        _ => None,
    }
}
