//! The state of transactions: which statements they admit, and what ends with them.

use std::io;

use datafusion::common::ParamValues;
use datafusion::sql::sqlparser::ast::Statement;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{CommandComplete, TransactionStatus};
use tokio::io::AsyncWrite;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::sqlstate::{IN_FAILED_TRANSACTION, PgError};
use crate::queries::{RunningQuery, cancelled};
use crate::sql::{Command, Planned};

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Checks that a statement is allowed. A failed transaction only accepts statements that end it.
    pub(super) fn check_transaction(&self, statement: &Statement) -> Result<(), PgError> {
        let ends = matches!(statement, Statement::Commit { .. } | Statement::Rollback { .. });
        self.refuse_in_failed(!ends)
    }

    /// Does the same for a prepared statement that is about to run. COMMIT of a failed transaction rolls back.
    pub(super) fn begin_command(&self, command: Command) -> Result<(), PgError> {
        let ends = [Command::Commit, Command::Rollback, Command::RollbackTo].contains(&command);
        self.refuse_in_failed(!ends)?;
        if self.transaction == TransactionStatus::Error && command == Command::Commit {
            self.session.roll_back();
        }
        Ok(())
    }

    /// Does the same for a statement about cursors or prepared statements.
    pub(super) fn begin_connection_statement(&self) -> Result<(), PgError> {
        self.refuse_in_failed(true)
    }

    fn refuse_in_failed(&self, is_refused: bool) -> Result<(), PgError> {
        if self.transaction == TransactionStatus::Error && is_refused {
            let text = "the transaction has failed; statements are ignored until ROLLBACK";
            return Err(PgError::new(IN_FAILED_TRANSACTION, text));
        }
        Ok(())
    }

    /// Runs a statement, unless the client asks to cancel it. COMMIT and ROLLBACK come to their end. A COMMIT that fails has
    /// ended the transaction.
    pub(super) async fn run_planned(
        &mut self,
        planned: Planned,
        values: ParamValues,
    ) -> Result<RunningQuery, Failure> {
        let (cancel, command) = (self.cancel_token(), planned.command);
        let ends = matches!(command, Command::Commit | Command::Rollback);
        let run = self.service.run(&self.session, planned, values);
        let run = tokio::select! {
            biased;
            () = cancel.cancelled(), if !ends => Err(cancelled()),
            query = run => query,
        };
        if run.is_err() && command == Command::Commit {
            self.transaction = TransactionStatus::Idle;
            self.prepared.end_transaction(false);
        }
        Ok(run?)
    }

    /// Runs a statement that changes tables, and reports how many rows it has changed.
    pub(super) async fn run_change(
        &mut self,
        planned: Planned,
        values: ParamValues,
    ) -> Result<(), Failure> {
        let (cancel, command) = (self.cancel_token(), planned.command);
        let query = self.run_planned(planned, values).await?;
        let rows = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled().into()),
            rows = query.changed_rows() => rows?,
        };
        Ok(self.complete(command, usize::try_from(rows).unwrap_or(usize::MAX))?)
    }

    /// Reports the end of a statement to the client, and applies its effect on the connection.
    pub(super) fn complete(&mut self, command: Command, rows: usize) -> io::Result<()> {
        let mut tag = command.name().to_owned();
        match command {
            Command::Select => tag = format!("SELECT {rows}"),
            Command::Insert => tag = format!("INSERT 0 {rows}"),
            command if command.counts_rows() => tag = format!("{} {rows}", command.name()),
            Command::Begin => self.transaction = TransactionStatus::Transaction,
            Command::Commit | Command::Rollback => {
                let is_failed = self.transaction == TransactionStatus::Error;
                if is_failed {
                    "ROLLBACK".clone_into(&mut tag);
                }
                self.transaction = TransactionStatus::Idle;
                self.prepared.end_transaction(command == Command::Commit && !is_failed);
            }
            Command::RollbackTo if self.transaction == TransactionStatus::Error => {
                self.transaction = TransactionStatus::Transaction;
            }
            Command::Discard => self.prepared.clear(),
            _ => {}
        }
        self.writer.add(&PgWireBackendMessage::CommandComplete(CommandComplete::new(tag)))
    }
}
