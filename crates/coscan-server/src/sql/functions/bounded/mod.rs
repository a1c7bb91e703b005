//! Limits functions whose results are not bounded by their arguments: `repeat('x', 1000000000)`. The size of a result,
//! or the work for it, is computed before the call (`growth`, from the `lengths` of arguments). Calls beyond the limits
//! are refused. The memory of results belongs to the query.

mod aggregates;
mod growth;
mod joined;
mod lengths;
mod rewriting;

use std::sync::Arc;

use arrow::array::Array;
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};

use crate::sql::query_task::current_query;
pub(in crate::sql) use aggregates::check_aggregates;
use growth::{BytesOfRow, DISTANCE_MAX, Growth};
use lengths::lengths;
pub(in crate::sql) use rewriting::BoundFunctions;

/// The maximum bytes of one value.
const VALUE_BYTES_MAX: u64 = 16 << 20;

/// The maximum bytes of the values of a batch.
const BATCH_BYTES_MAX: u64 = 256 << 20;

/// The size above which results are computed in parts, since they may be smaller than the maximum.
const PART_BYTES: u64 = 16 << 20;

/// The maximum number of steps for the rows of a batch.
const STEPS_MAX: u64 = 1 << 30;

/// The number of rows between two checks for cancellation, where each row may take long.
const SLOW_ROWS: usize = 64;

fn bounded(inner: Arc<ScalarUDF>, growth: Growth) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Bounded { inner, growth }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

impl Bounded {
    fn invoke(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check_steps(&arguments)?;
        let rows = match arguments.args.iter().any(|it| matches!(it, ColumnarValue::Array(_))) {
            true => arguments.number_rows,
            false => 1,
        };
        let part = match self.growth.bytes(&arguments.args)? {
            None => self.slow_rows(&arguments),
            Some(bytes) => self.rows_of_part(&bytes, rows)?,
        };
        if part >= rows {
            return self.inner.invoke_with_args(arguments);
        }
        self.invoke_in_parts(&arguments, part)
    }

    /// The number of rows that may be computed at once. Reserves memory for them.
    fn rows_of_part(&self, bytes: &BytesOfRow, rows: usize) -> Result<usize> {
        let is_estimate = self.growth == Growth::ReplaceMatches;
        let value_max = if is_estimate { BATCH_BYTES_MAX } else { VALUE_BYTES_MAX };
        let (mut total, mut largest) = (0_u64, 0_u64);
        for row in 0..rows {
            let value = bytes(row);
            if value > value_max {
                let text = format!("a value of up to {value} bytes; the most is {value_max}");
                return Err(self.too_large(&text));
            }
            total = total.saturating_add(value);
            largest = largest.max(value);
        }
        if total <= PART_BYTES {
            return Ok(rows);
        }
        if !is_estimate {
            self.reserve(total)?;
            return Ok(rows);
        }
        let rows = PART_BYTES / largest.max(1);
        Ok(usize::try_from(rows).unwrap_or(1).max(1))
    }

    /// The number of rows that are computed at once, where each may take long.
    fn slow_rows(&self, arguments: &ScalarFunctionArgs) -> usize {
        let patterns = arguments.args.iter().skip(1);
        let vary = patterns.into_iter().any(|it| matches!(it, ColumnarValue::Array(_)));
        if self.growth == Growth::Matches && vary { SLOW_ROWS } else { usize::MAX }
    }

    /// Computes the rows in parts, and checks after each part their bytes and whether the query was cancelled.
    fn invoke_in_parts(
        &self,
        arguments: &ScalarFunctionArgs,
        part: usize,
    ) -> Result<ColumnarValue> {
        let (rows, mut done, mut total) = (arguments.number_rows, Vec::new(), 0);
        for start in (0..rows).step_by(part) {
            if current_query().is_some_and(|query| query.is_cancelled()) {
                return Err(DataFusionError::Execution("the query was cancelled".to_owned()));
            }
            let count = part.min(rows - start);
            let result = self.inner.invoke_with_args(slice(arguments, start, count))?;
            let result = result.into_array(count)?;
            total += result.get_array_memory_size() as u64;
            self.reserve(total)?;
            done.push(result);
        }
        let done: Vec<&dyn Array> = done.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&done)?))
    }

    /// Reserves memory of the query for the results of a batch.
    fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes > BATCH_BYTES_MAX {
            let text = format!("values of {bytes} bytes in a batch; the most is {BATCH_BYTES_MAX}");
            return Err(self.too_large(&text));
        }
        match current_query() {
            Some(query) => query.reserve_for_batch(std::ptr::from_ref(self).addr(), bytes),
            None => Ok(()),
        }
    }

    fn check_steps(&self, arguments: &ScalarFunctionArgs) -> Result<()> {
        if !matches!(self.growth, Growth::Product | Growth::Distance) {
            return Ok(());
        }
        let [left, right, ..] = &arguments.args[..] else { return Ok(()) };
        let (left, right) = (lengths(left)?, lengths(right)?);
        let rows = if left.is_same() && right.is_same() { 1 } else { arguments.number_rows };
        let mut steps = 0_u64;
        for row in 0..rows {
            let [left, right] = [left.at(row), right.at(row)];
            if self.growth == Growth::Distance && left.max(right) > DISTANCE_MAX {
                let text = format!("texts of up to {DISTANCE_MAX} bytes only");
                return Err(DataFusionError::ResourcesExhausted(format!(
                    "{} compares {text}",
                    self.inner.name()
                )));
            }
            steps = steps.saturating_add(left.unsigned_abs().saturating_mul(right.unsigned_abs()));
        }
        if steps > STEPS_MAX {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} would take more than {STEPS_MAX} steps for a batch of rows: its arguments are too long",
                self.inner.name()
            )));
        }
        Ok(())
    }

    fn too_large(&self, what: &str) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!("{} would make {what}", self.inner.name()))
    }
}

fn slice(arguments: &ScalarFunctionArgs, start: usize, count: usize) -> ScalarFunctionArgs {
    let args = arguments.args.iter().map(|argument| match argument {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, count)),
        ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(scalar.clone()),
    });
    ScalarFunctionArgs {
        args: args.collect(),
        arg_fields: arguments.arg_fields.clone(),
        number_rows: count,
        return_field: Arc::clone(&arguments.return_field),
        config_options: Arc::clone(&arguments.config_options),
    }
}

/// All except the call is delegated to the function.
impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner, growth: self.growth }))
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.invoke(arguments)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        match self.growth {
            // Patterns become LIKE. Other functions might become calls without bounds.
            Growth::Matches => self.inner.simplify(args, info),
            _ => Ok(ExprSimplifyResult::Original(args)),
        }
    }
}
