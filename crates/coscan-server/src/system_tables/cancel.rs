//! `SELECT coscan_cancel(17)` cancels query 17.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};

use crate::queries::{Cancelled, Queries, QueryId};
use crate::users::User;

/// The function for a user. It cancels the user's own queries, or any query for administrators. It returns whether
/// there was such a query.
pub(crate) fn cancel_function(queries: &Arc<Queries>, user: &Arc<User>) -> ScalarUDF {
    let (queries, user) = (Arc::clone(queries), Arc::clone(user));
    let cancel = move |arguments: &[ColumnarValue]| -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let ids = arrays[0].as_primitive::<Int64Type>();
        let cancel = |id: i64| {
            let id = u64::try_from(id).ok()?;
            Some(queries.cancel(QueryId(id), &user) == Cancelled::Yes)
        };
        let cancelled = ids.iter().map(|id| id.map(|id| cancel(id).unwrap_or(false)));
        let cancelled: BooleanArray = cancelled.collect();
        Ok(ColumnarValue::Array(Arc::new(cancelled) as ArrayRef))
    };
    let (argument, result) = (vec![DataType::Int64], DataType::Boolean);
    create_udf("coscan_cancel", argument, result, Volatility::Volatile, Arc::new(cancel))
}
