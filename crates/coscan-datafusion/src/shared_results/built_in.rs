//! The functions of the engine whose results depend on their arguments only: on no setting of a session, no time and no order
//! of rows.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions::all_default_functions;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use crate::decimals::DECIMAL_PRODUCT;

/// Scalar functions, by their names in the engine.
const SCALAR: [&str; 33] = [
    "abs",
    "ascii",
    "bit_length",
    "btrim",
    "ceil",
    "character_length",
    "coalesce",
    "concat",
    "contains",
    "date_bin",
    "date_part",
    "date_trunc",
    "ends_with",
    "exp",
    "floor",
    "left",
    "ln",
    "lower",
    "ltrim",
    "nullif",
    "octet_length",
    "power",
    "replace",
    "reverse",
    "right",
    "round",
    "rtrim",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "trunc",
    "upper",
];

/// Aggregates whose states can be merged in any order.
const AGGREGATE: [&str; 13] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
];

type Functions<F> = LazyLock<HashMap<&'static str, Arc<F>>>;

static SCALAR_FUNCTIONS: Functions<ScalarUDF> = LazyLock::new(|| {
    let functions = all_default_functions().into_iter().filter_map(|function| {
        let name = SCALAR.into_iter().find(|name| *name == function.name())?;
        Some((name, function))
    });
    let product = ("decimal_product", Arc::clone(&DECIMAL_PRODUCT));
    functions.chain([product]).collect()
});

static AGGREGATE_FUNCTIONS: Functions<AggregateUDF> = LazyLock::new(|| {
    let functions = all_default_aggregate_functions().into_iter().filter_map(|function| {
        let name = AGGREGATE.into_iter().find(|name| *name == function.name())?;
        Some((name, function))
    });
    functions.collect()
});

/// The name of a scalar function, if it is one of these, and not another of the same name.
pub(super) fn scalar_function(function: &ScalarUDF) -> Option<&'static str> {
    let (name, known) = SCALAR_FUNCTIONS.get_key_value(function.name())?;
    (**known == *function).then_some(name)
}

/// The name of an aggregate, if it is one of these, and not another of the same name.
pub(super) fn aggregate(function: &AggregateUDF) -> Option<&'static str> {
    let (name, known) = AGGREGATE_FUNCTIONS.get_key_value(function.name())?;
    (**known == *function).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_has_all_of_these_functions() {
        let missing = |name: &&str| !SCALAR_FUNCTIONS.contains_key(name);
        assert_eq!(SCALAR.iter().filter(|name| missing(name)).collect::<Vec<_>>(), [&""; 0]);
        let missing = |name: &&str| !AGGREGATE_FUNCTIONS.contains_key(name);
        assert_eq!(AGGREGATE.iter().filter(|name| missing(name)).collect::<Vec<_>>(), [&""; 0]);
    }
}
