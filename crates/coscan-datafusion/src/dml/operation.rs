//! What a statement does with the rows of its input.

use std::fmt;

use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;

/// What a statement does with the rows of its input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Operation {
    /// Inserts the rows, which have all columns of the table.
    Insert,
    /// Deletes all rows of the table, and inserts those of the input.
    Overwrite,
    /// Deletes the rows with these numbers. The number is the only column.
    Delete,
    /// Changes the rows with the numbers in the first column. The others are the new values of these columns of the table.
    Update { columns: Vec<usize> },
    /// Changes or inserts rows. The first column has the number of the row, NULL if it is to be inserted; the second the
    /// action, an index into `actions`; the others the new values of these columns of the table.
    Merge { actions: Vec<MergeAction>, columns: Vec<usize> },
}

/// The action of a clause of `MERGE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum MergeAction {
    /// Changes these columns of the table.
    Update(Vec<usize>),
    Delete,
    /// Inserts a row, whose other columns are NULL.
    Insert,
}

impl Operation {
    /// The operation of an `INSERT`.
    ///
    /// # Errors
    /// If it is `REPLACE INTO`, since tables have no keys.
    pub(crate) fn of_insert(operation: InsertOp) -> Result<Self> {
        match operation {
            InsertOp::Append => Ok(Self::Insert),
            InsertOp::Overwrite => Ok(Self::Overwrite),
            InsertOp::Replace => {
                not_impl_err!("tables have no keys, so use MERGE instead of REPLACE")
            }
        }
    }

    /// The name of the statement.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Overwrite => "INSERT OVERWRITE",
            Self::Delete => "DELETE",
            Self::Update { .. } => "UPDATE",
            Self::Merge { .. } => "MERGE",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
