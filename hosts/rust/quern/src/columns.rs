// SPDX-License-Identifier: Apache-2.0
//! The types of the columns of batches. Over the C interface a batch comes without its types: the library relies on
//! those that it was told before, so they are compared here.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};

use crate::error::{Error, Result};

/// The name of a type in specs: `i64`, `utf8_view`, `fixed_binary(16)`. Units, time zones, digits and scales are not
/// part of it. None for types that kernels do not have.
#[must_use]
pub fn type_name(data_type: &DataType) -> Option<String> {
    Some(
        match data_type {
            DataType::Boolean => "bool",
            DataType::Int8 => "i8",
            DataType::Int16 => "i16",
            DataType::Int32 => "i32",
            DataType::Int64 => "i64",
            DataType::UInt8 => "u8",
            DataType::UInt16 => "u16",
            DataType::UInt32 => "u32",
            DataType::UInt64 => "u64",
            DataType::Float32 => "f32",
            DataType::Float64 => "f64",
            DataType::Decimal32(_, 0..) => "decimal32",
            DataType::Decimal64(_, 0..) => "decimal64",
            DataType::Decimal128(_, 0..) => "decimal128",
            DataType::Date32 => "date32",
            DataType::Date64 => "date64",
            DataType::Time32(_) => "time32",
            DataType::Time64(_) => "time64",
            DataType::Timestamp(..) => "timestamp",
            DataType::Duration(_) => "duration",
            DataType::Utf8 => "utf8",
            DataType::LargeUtf8 => "large_utf8",
            DataType::Utf8View => "utf8_view",
            DataType::Binary => "binary",
            DataType::LargeBinary => "large_binary",
            DataType::BinaryView => "binary_view",
            DataType::FixedSizeBinary(bytes) if *bytes > 0 => return Some(format!("fixed_binary({bytes})")),
            _ => return None,
        }
        .to_owned(),
    )
}

/// What the columns of a batch have to be.
#[derive(Debug)]
pub(crate) struct Columns(Vec<String>);

impl Columns {
    /// Those that are bound to a port.
    pub(crate) fn bound(schema: &Schema) -> Self {
        Self(schema.fields().iter().map(|field| described(field.data_type())).collect())
    }

    /// Those of a pipeline: `i64,decimal128(15,2):nullable`.
    pub(crate) fn named(list: &str) -> Self {
        let mut names = vec![String::new()];
        let mut depth = 0;
        for letter in list.chars() {
            match letter {
                ',' if depth == 0 => names.push(String::new()),
                ' ' => {}
                _ => {
                    depth += i32::from(letter == '(') - i32::from(letter == ')');
                    if let Some(name) = names.last_mut() {
                        name.push(letter);
                    }
                }
            }
        }
        let without_suffix = |name: String| {
            let name = name.split(':').next().unwrap_or_default().to_owned();
            match name.split_once('(') {
                Some((decimal, _)) if decimal.starts_with("decimal") => decimal.to_owned(),
                _ => name,
            }
        };
        Self(names.into_iter().map(without_suffix).filter(|name| !name.is_empty()).collect())
    }

    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a batch that has others.
    pub(crate) fn check(&self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.0.len() {
            let (given, accepted) = (batch.num_columns(), self.0.len());
            return Err(Error::InvalidArgument(format!("batch of {given} columns; accepted: {accepted}")));
        }
        for (number, (column, accepted)) in batch.columns().iter().zip(&self.0).enumerate() {
            let given = column.data_type();
            if described(given) != *accepted {
                return Err(Error::InvalidArgument(format!("column {number} of type {given}; accepted: {accepted}")));
            }
        }
        Ok(())
    }
}

/// The name of a type that kernels have, and what Arrow calls others, such as dictionaries.
fn described(data_type: &DataType) -> String {
    type_name(data_type).unwrap_or_else(|| format!("{data_type:?}"))
}
