// SPDX-License-Identifier: Apache-2.0
//! Physical expressions as the texts of kernel specs: conditions of filters, and expressions of maps.
//!
//! Only what gives the same value to the bit is translated (`docs/datafusion.md` has the list). For anything else the
//! functions answer `None`, and the operator stays `DataFusion`'s.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NegativeExpr,
    NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::types::{self, ColumnType};

/// A column that expressions may refer to: its number in the pipeline, and its type.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    pub(crate) number: u32,
    pub(crate) column_type: ColumnType,
}

/// Collects the columns that a spec mentions, in the order of its `in` or of the mentions in a condition.
#[derive(Debug)]
pub(crate) struct Translator<'a> {
    scope: &'a [ScopeColumn],
    keys: Vec<u32>,
    items: Vec<String>,
}

/// An expression of a map.
#[derive(Debug)]
pub(crate) struct Term {
    pub(crate) text: String,
    pub(crate) data_type: DataType,
    /// By the rules of maps, which look at the types of arguments alone. `DataFusion` may know better.
    pub(crate) nullable: bool,
}

impl Term {
    fn new(text: String, data_type: DataType, nullable: bool) -> Self {
        Self { text, data_type, nullable }
    }

    fn bool(text: String, nullable: bool) -> Self {
        Self::new(text, DataType::Boolean, nullable)
    }
}

impl<'a> Translator<'a> {
    pub(crate) fn new(scope: &'a [ScopeColumn]) -> Self {
        Self { scope, keys: vec![], items: vec![] }
    }

    /// The numbers of the columns that were mentioned.
    pub(crate) fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// The list `in` of a map.
    pub(crate) fn items(&self) -> &[String] {
        &self.items
    }

    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<&'a ScopeColumn> {
        self.scope.get(expr.downcast_ref::<Column>()?.index())
    }

    // ---- maps ----

    fn load(&mut self, column: &ScopeColumn) -> Option<Term> {
        let known = self.keys.iter().position(|number| *number == column.number);
        let place = if let Some(place) = known {
            place
        } else {
            self.items.push(column.column_type.map_item()?);
            self.keys.push(column.number);
            self.keys.len() - 1
        };
        let ColumnType { data_type, nullable } = &column.column_type;
        Some(Term::new(format!("${place}"), data_type.clone(), *nullable))
    }

    /// An expression whose value is no string.
    pub(crate) fn value(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<Term> {
        let term = self.term(expr)?;
        (!types::is_string(&term.data_type)).then_some(term)
    }

    fn term(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<Term> {
        if let Some(column) = self.column(expr) {
            return self.load(column);
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            return constant(literal.value());
        }
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            return self.binary(binary);
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            return self.cast(cast);
        }
        if let Some(case) = expr.downcast_ref::<CaseExpr>() {
            return self.case(case);
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            let argument = self.condition_term(not.arg())?;
            return Some(Term::bool(format!("not({})", argument.text), argument.nullable));
        }
        if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
            let argument = self.term(is_null.arg())?;
            return Some(Term::bool(format!("is_null({})", argument.text), false));
        }
        if let Some(is_valid) = expr.downcast_ref::<IsNotNullExpr>() {
            let argument = self.term(is_valid.arg())?;
            return Some(Term::bool(format!("is_valid({})", argument.text), false));
        }
        if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
            let argument = self.value(negative.arg())?;
            return Some(Term::new(format!("negate({})", argument.text), argument.data_type, argument.nullable));
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            return self.in_list(list);
        }
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            return self.like(like);
        }
        if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
            return self.function(function);
        }
        None
    }

    /// An expression that is a bool.
    fn condition_term(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<Term> {
        self.term(expr).filter(|term| term.data_type == DataType::Boolean)
    }

    fn binary(&mut self, binary: &BinaryExpr) -> Option<Term> {
        let (left, right) = (self.term(binary.left())?, self.term(binary.right())?);
        let arguments = format!("({},{})", left.text, right.text);
        let nullable = left.nullable || right.nullable;
        if let Some(function) = comparison_function(*binary.op()) {
            // Columns and constants of the same type; decimals may differ in digits.
            let comparable = types::compares_alike(&left.data_type) && same_but_digits(&left, &right);
            let nullable = nullable && !matches!(binary.op(), Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
            return comparable.then(|| Term::bool(format!("{function}{arguments}"), nullable));
        }
        if matches!(binary.op(), Operator::And | Operator::Or) {
            let name = if *binary.op() == Operator::And { "and" } else { "or" };
            let bools = left.data_type == DataType::Boolean && right.data_type == DataType::Boolean;
            return bools.then(|| Term::bool(format!("{name}{arguments}"), nullable));
        }
        arithmetic(*binary.op(), &left, &right, &arguments)
    }

    fn cast(&mut self, cast: &CastExpr) -> Option<Term> {
        let argument = self.value(cast.expr())?;
        let (from, to) = (&argument.data_type, cast.cast_type());
        if from == to {
            return Some(argument);
        }
        let exact = match (from, to) {
            (DataType::Decimal128(..), DataType::Decimal128(..)) => true,
            (from, to) if types::is_integer(from) => {
                types::is_integer(to) || types::is_float(to) || matches!(to, DataType::Decimal128(_, 0..))
            }
            (DataType::Float32, DataType::Float64) => true,
            _ => false,
        };
        if !exact || cast.cast_options().safe {
            return None;
        }
        Some(Term::new(format!("cast({},{})", argument.text, types::map_name(to)?), to.clone(), argument.nullable))
    }

    fn case(&mut self, case: &CaseExpr) -> Option<Term> {
        let mut arguments = vec![];
        let mut result: Option<DataType> = None;
        let mut nullable = case.else_expr().is_none();
        let mut take = |term: &Term| -> Option<()> {
            nullable |= term.nullable;
            let same = match (&result, &term.data_type) {
                (None, _) => true,
                (Some(DataType::Decimal128(_, a)), DataType::Decimal128(_, b)) => a == b,
                (Some(a), b) => a == b,
            };
            let wider = match (&result, &term.data_type) {
                (Some(DataType::Decimal128(a, _)), DataType::Decimal128(b, _)) => b > a,
                (earlier, _) => earlier.is_none(),
            };
            if wider {
                result = Some(term.data_type.clone());
            }
            same.then_some(())
        };
        for (when, then) in case.when_then_expr() {
            let condition = if let Some(base) = case.expr() {
                let (base, when) = (self.term(base)?, self.term(when)?);
                let comparable = types::compares_alike(&base.data_type) && same_but_digits(&base, &when);
                comparable.then(|| format!("equal({},{})", base.text, when.text))?
            } else {
                self.condition_term(when)?.text
            };
            let value = self.value(then)?;
            take(&value)?;
            arguments.extend([condition, value.text]);
        }
        if let Some(otherwise) = case.else_expr() {
            let value = self.value(otherwise)?;
            take(&value)?;
            arguments.push(value.text);
        }
        let data_type = result?;
        if case.else_expr().is_none() {
            arguments.push(format!("null:{}", types::map_name(&data_type)?));
        }
        Some(Term::new(format!("case_when({})", arguments.join(",")), data_type, nullable))
    }

    fn in_list(&mut self, list: &InListExpr) -> Option<Term> {
        let argument = self.term(list.expr())?;
        if !types::compares_alike(&argument.data_type) || list.list().len() > 64 || list.list().is_empty() {
            return None;
        }
        let mut tests = vec![];
        for value in list.list() {
            let value = constant(value.downcast_ref::<Literal>()?.value())?;
            same_but_digits(&argument, &value).then_some(())?;
            tests.push(format!("equal({},{})", argument.text, value.text));
        }
        let any = if tests.len() == 1 { tests.remove(0) } else { format!("or({})", tests.join(",")) };
        Some(Term::bool(if list.negated() { format!("not({any})") } else { any }, argument.nullable))
    }

    fn like(&mut self, like: &LikeExpr) -> Option<Term> {
        let (argument, pattern) = (self.term(like.expr())?, pattern(like)?);
        let function = if like.negated() { "not_like" } else { "like" };
        let name = types::name(&argument.data_type)?;
        Some(Term::bool(format!("{function}({},{pattern}:{name})", argument.text), argument.nullable))
    }

    fn function(&mut self, function: &ScalarFunctionExpr) -> Option<Term> {
        match (function.name(), function.args()) {
            ("date_part", [part, date]) => {
                let part = part.downcast_ref::<Literal>()?.value().try_as_str()??;
                let name = match part.to_ascii_lowercase().as_str() {
                    "year" => "year",
                    "quarter" => "quarter",
                    "month" => "month",
                    "day" => "day",
                    _ => return None,
                };
                let date = self.term(date)?;
                let same = date.data_type == DataType::Date32 && *function.return_type() == DataType::Int32;
                same.then(|| Term::new(format!("{name}({})", date.text), DataType::Int32, date.nullable))
            }
            ("coalesce", arguments) if (2..=64).contains(&arguments.len()) => {
                let terms = arguments.iter().map(|argument| self.value(argument)).collect::<Option<Vec<_>>>()?;
                let same = terms.iter().all(|term| term.data_type == terms[0].data_type);
                let texts: Vec<_> = terms.iter().map(|term| term.text.as_str()).collect();
                let nullable = terms.iter().all(|term| term.nullable);
                same.then(|| Term::new(format!("coalesce({})", texts.join(",")), terms[0].data_type.clone(), nullable))
            }
            _ => None,
        }
    }

    // ---- conditions of filters ----

    fn mention(&mut self, column: &ScopeColumn) -> Option<String> {
        self.keys.push(column.number);
        column.column_type.item()
    }

    /// A condition in the words of a filter, whose leaves compare a column with a constant or with a column. Keys have
    /// a column for each mention.
    pub(crate) fn condition(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
        if let Some(column) = self.column(expr) {
            let is_bool = column.column_type.data_type == DataType::Boolean;
            return is_bool.then(|| self.mention(column))?;
        }
        if let Some(not) = expr.downcast_ref::<NotExpr>() {
            return Some(format!("not ({})", self.condition(not.arg())?));
        }
        if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
            let column = self.column(is_null.arg())?;
            return Some(self.mention(column)? + " is null");
        }
        if let Some(is_valid) = expr.downcast_ref::<IsNotNullExpr>() {
            let column = self.column(is_valid.arg())?;
            return Some(self.mention(column)? + " is not null");
        }
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            let column = self.column(list.expr())?;
            let values: Vec<_> = list
                .list()
                .iter()
                .map(|value| literal(value.downcast_ref::<Literal>()?.value(), &column.column_type.data_type))
                .collect::<Option<_>>()?;
            if values.is_empty() {
                return None;
            }
            let not = if list.negated() { "not " } else { "" };
            return Some(format!("{} {not}in ({})", self.mention(column)?, values.join(", ")));
        }
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            let (column, pattern) = (self.column(like.expr())?, pattern(like)?);
            let not = if like.negated() { "not " } else { "" };
            return Some(format!("{} {not}like {pattern}", self.mention(column)?));
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        if matches!(binary.op(), Operator::And | Operator::Or) {
            let name = if *binary.op() == Operator::And { "and" } else { "or" };
            let (left, right) = (self.condition(binary.left())?, self.condition(binary.right())?);
            return Some(format!("({left} {name} {right})"));
        }
        self.comparison(binary)
    }

    fn comparison(&mut self, binary: &BinaryExpr) -> Option<String> {
        let sign = comparison_sign(*binary.op())?;
        match (self.column(binary.left()), self.column(binary.right())) {
            (Some(left), Some(right)) if left.column_type.data_type == right.column_type.data_type => {
                if !types::compares_alike(&left.column_type.data_type) {
                    return None;
                }
                Some(format!("{} {sign} {}", self.mention(left)?, self.mention(right)?))
            }
            (Some(column), None) => {
                let value = binary.right().downcast_ref::<Literal>()?;
                let value = literal(value.value(), &column.column_type.data_type)?;
                Some(format!("{} {sign} {value}", self.mention(column)?))
            }
            (None, Some(column)) => {
                let value = binary.left().downcast_ref::<Literal>()?;
                let value = literal(value.value(), &column.column_type.data_type)?;
                let sign = comparison_sign(binary.op().swap()?)?;
                Some(format!("{} {sign} {value}", self.mention(column)?))
            }
            _ => None,
        }
    }
}

fn comparison_function(op: Operator) -> Option<&'static str> {
    Some(match op {
        Operator::Eq => "equal",
        Operator::NotEq => "not_equal",
        Operator::Lt => "less",
        Operator::LtEq => "less_equal",
        Operator::Gt => "greater",
        Operator::GtEq => "greater_equal",
        Operator::IsDistinctFrom => "is_distinct",
        Operator::IsNotDistinctFrom => "is_not_distinct",
        _ => return None,
    })
}

fn comparison_sign(op: Operator) -> Option<&'static str> {
    Some(match op {
        Operator::Eq => "=",
        Operator::NotEq => "<>",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        _ => return None,
    })
}

fn same_but_digits(left: &Term, right: &Term) -> bool {
    match (&left.data_type, &right.data_type) {
        (DataType::Decimal128(_, a), DataType::Decimal128(_, b)) => a == b,
        (a, b) => a == b,
    }
}

/// Integers wrap around, as `DataFusion`'s do; decimals that need more than 38 digits fail, and the plan that was
/// replaced runs instead.
fn arithmetic(op: Operator, left: &Term, right: &Term, arguments: &str) -> Option<Term> {
    let result = match (&left.data_type, &right.data_type) {
        (&DataType::Decimal128(p1, s1), &DataType::Decimal128(p2, s2)) => {
            decimal_result(op, (p1, s1), (p2, s2)).map(|(digits, scale)| DataType::Decimal128(digits, scale))?
        }
        (a, b) if a == b && (types::is_integer(a) || types::is_float(a)) => a.clone(),
        _ => return None,
    };
    let integers = types::is_integer(&result);
    let function = match op {
        Operator::Plus => "add",
        Operator::Minus => "subtract",
        Operator::Multiply => "multiply",
        Operator::Divide if integers => "divide_checked",
        Operator::Divide if types::is_float(&result) => "divide",
        Operator::Modulo if integers => "modulo_checked",
        _ => return None,
    };
    Some(Term::new(format!("{function}{arguments}"), result, left.nullable || right.nullable))
}

fn decimal_result(op: Operator, (p1, s1): (u8, i8), (p2, s2): (u8, i8)) -> Option<(u8, i8)> {
    if s1 < 0 || s2 < 0 {
        return None;
    }
    let (before1, before2) = (i16::from(p1) - i16::from(s1), i16::from(p2) - i16::from(s2));
    let (digits, scale) = match op {
        Operator::Plus | Operator::Minus => (before1.max(before2) + i16::from(s1.max(s2)) + 1, s1.max(s2)),
        Operator::Multiply => (i16::from(p1) + i16::from(p2), s1.checked_add(s2)?),
        _ => return None,
    };
    (scale <= 38).then(|| (u8::try_from(digits.min(38)).unwrap_or(38), scale))
}

/// A pattern whose escape makes no difference.
fn pattern(like: &LikeExpr) -> Option<String> {
    let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
    if like.case_insensitive() || pattern.contains('\\') {
        return None;
    }
    quoted(pattern)
}

fn quoted(text: &str) -> Option<String> {
    (!text.chars().any(char::is_control)).then(|| format!("'{}'", text.replace('\'', "''")))
}

/// The constant of a map: `5:i64`.
fn constant(value: &ScalarValue) -> Option<Term> {
    let data_type = value.data_type();
    let name = types::map_name(&data_type)?;
    if value.is_null() {
        return Some(Term::new(format!("null:{name}"), data_type, true));
    }
    let text = match value {
        ScalarValue::Decimal128(Some(value), _, scale) => decimal_text(*value, u32::try_from(*scale).ok()?),
        ScalarValue::Float64(Some(value)) => float_text(*value)?,
        ScalarValue::Float32(Some(value)) => float_text(f64::from(*value))?,
        other => literal(other, &data_type)?,
    };
    Some(Term::new(format!("{text}:{name}"), data_type, false))
}

fn float_text(value: f64) -> Option<String> {
    // The shortest text that is read back as the same number. A text without a point is an integer.
    value.is_finite().then(|| format!("{value:?}"))
}

fn decimal_text(value: i128, scale: u32) -> String {
    let digits = value.unsigned_abs().to_string();
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let scale = scale as usize;
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// The literal of a filter, for a column of a type: the number that the column stores, or a text.
fn literal(value: &ScalarValue, data_type: &DataType) -> Option<String> {
    if value.data_type() != *data_type {
        return None;
    }
    Some(match value {
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Int8(Some(value)) => value.to_string(),
        ScalarValue::Int16(Some(value)) => value.to_string(),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => value.to_string(),
        ScalarValue::Int64(Some(value))
        | ScalarValue::TimestampSecond(Some(value), _)
        | ScalarValue::TimestampMillisecond(Some(value), _)
        | ScalarValue::TimestampMicrosecond(Some(value), _)
        | ScalarValue::TimestampNanosecond(Some(value), _) => value.to_string(),
        ScalarValue::UInt8(Some(value)) => value.to_string(),
        ScalarValue::UInt16(Some(value)) => value.to_string(),
        ScalarValue::UInt32(Some(value)) => value.to_string(),
        ScalarValue::UInt64(Some(value)) => value.to_string(),
        ScalarValue::Decimal128(Some(value), ..) => value.to_string(),
        ScalarValue::Utf8(Some(value)) | ScalarValue::LargeUtf8(Some(value)) | ScalarValue::Utf8View(Some(value)) => {
            quoted(value)?
        }
        _ => return None,
    })
}
