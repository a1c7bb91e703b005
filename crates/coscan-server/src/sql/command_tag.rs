//! The command words of statements, which clients are told.

use datafusion::sql::sqlparser::ast::{ObjectType, Statement};

/// The command word of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// A query: SELECT, VALUES, WITH, TABLE.
    Select,
    /// EXPLAIN or DESCRIBE.
    Explain,
    /// SHOW.
    Show,
    /// SET.
    Set,
    /// RESET.
    Reset,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// MERGE.
    Merge,
    /// TRUNCATE.
    Truncate,
    /// CREATE TABLE.
    CreateTable,
    /// DROP TABLE.
    DropTable,
    /// VACUUM.
    Vacuum,
    /// BEGIN or START TRANSACTION.
    Begin,
    /// COMMIT or END.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo,
    /// SAVEPOINT.
    Savepoint,
    /// RELEASE SAVEPOINT.
    Release,
    /// DISCARD.
    Discard,
    /// DEALLOCATE. The protocol has the prepared statements.
    Deallocate,
    /// UNLISTEN. There are no notifications.
    Unlisten,
}

impl Command {
    /// Whether the statement changes tables, and so has no rows as its result.
    #[must_use]
    pub fn is_change(self) -> bool {
        self.counts_rows() || self.is_of_tables() || self == Self::Truncate
    }

    /// Whether its result is the number of rows that it has changed.
    #[must_use]
    pub fn counts_rows(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Delete | Self::Merge)
    }

    /// Whether it concerns which tables there are, and their files.
    pub(super) fn is_of_tables(self) -> bool {
        matches!(self, Self::CreateTable | Self::DropTable | Self::Vacuum)
    }

    /// The command word, in capitals.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Explain => "EXPLAIN",
            Self::Show => "SHOW",
            Self::Set => "SET",
            Self::Reset => "RESET",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Merge => "MERGE",
            Self::Truncate => "TRUNCATE TABLE",
            Self::CreateTable => "CREATE TABLE",
            Self::DropTable => "DROP TABLE",
            Self::Vacuum => "VACUUM",
            Self::Begin => "BEGIN",
            Self::Commit => "COMMIT",
            Self::Rollback | Self::RollbackTo => "ROLLBACK",
            Self::Savepoint => "SAVEPOINT",
            Self::Release => "RELEASE",
            Self::Discard => "DISCARD ALL",
            Self::Deallocate => "DEALLOCATE",
            Self::Unlisten => "UNLISTEN",
        }
    }
}

/// The command word of a statement that is a query.
pub(super) fn query_command(statement: &Statement) -> Command {
    match statement {
        Statement::Explain { .. } | Statement::ExplainTable { .. } => Command::Explain,
        Statement::ShowTables { .. } | Statement::ShowColumns { .. } => Command::Show,
        Statement::Insert(_) => Command::Insert,
        Statement::Update(_) => Command::Update,
        Statement::Delete(_) => Command::Delete,
        Statement::Merge(_) => Command::Merge,
        Statement::Truncate(_) => Command::Truncate,
        Statement::CreateTable(_) => Command::CreateTable,
        Statement::Drop { object_type: ObjectType::Table, .. } => Command::DropTable,
        Statement::Vacuum(_) => Command::Vacuum,
        _ => Command::Select,
    }
}
