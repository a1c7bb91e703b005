//! Arrays of one dimension ([PostgreSQL, "Array Input and Output Syntax"]). Elements are read one at a time, since a
//! short message may have a million of them.
//!
//! [PostgreSQL, "Array Input and Output Syntax"]: https://www.postgresql.org/docs/15/arrays.html#ARRAYS-IO

mod binary;
mod text;

pub(super) use binary::{BinaryArray, add_binary_header};
pub(super) use text::{TextArray, add_text};

use crate::postgres::sqlstate::{INVALID_VALUE, NOT_SUPPORTED, PgError};

fn malformed(text: &str) -> PgError {
    PgError::new(INVALID_VALUE, format!("malformed array: {text}"))
}

fn nested() -> PgError {
    PgError::new(NOT_SUPPORTED, "arrays of more than one dimension are not supported")
}
