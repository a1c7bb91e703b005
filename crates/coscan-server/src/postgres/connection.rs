//! A connection whose user is logged in. It reads messages and sends answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::Statement;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use tokio::io::AsyncWrite;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::postgres::cancel::Registered;
use crate::postgres::copying::Copying;
use crate::postgres::decode::Frontend;
use crate::postgres::messages::Messages;
use crate::postgres::prepared::PreparedStatements;
use crate::postgres::sqlstate::{
    ADMIN_SHUTDOWN, IDLE_SESSION_TIMEOUT, NOT_SUPPORTED, PROTOCOL_VIOLATION, PgError,
};
use crate::postgres::writer::Writer;
use crate::queries::cancelled;
use crate::sql::{Planned, Session, Sql, SqlService, TextMemory};

/// The reason why a message cannot be answered.
#[derive(Debug)]
pub(super) enum Failure {
    /// The statement failed. The error is sent to the client.
    Statement(PgError),
    /// The connection cannot be used any more.
    Connection(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl<E: Into<PgError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Statement(error.into())
    }
}

/// A connection of a user.
pub(super) struct Connection<W> {
    pub(super) service: Arc<SqlService>,
    pub(super) session: Session,
    pub(super) writer: Writer<W>,
    pub(super) prepared: PreparedStatements,
    registered: Registered,
    pub(super) transaction: TransactionStatus,
    /// Whether messages are skipped until Sync, after an error in the extended protocol.
    is_skipping: bool,
    /// Whether the server has told the client that it is ready, and received nothing since.
    is_idle: bool,
    /// Cancelled if the client asks to cancel what it has sent since the last token.
    cancel: CancellationToken,
    /// The memory of the text that is being answered.
    text_memory: Option<TextMemory>,
    /// The rows that the client is copying into a table.
    pub(super) copying: Option<Copying>,
}

impl<W: AsyncWrite + Unpin> Connection<W> {
    pub(super) fn new(
        service: Arc<SqlService>,
        session: Session,
        writer: Writer<W>,
        registered: Registered,
    ) -> Self {
        Self {
            service,
            session,
            writer,
            prepared: PreparedStatements::default(),
            registered,
            transaction: TransactionStatus::Idle,
            is_skipping: false,
            is_idle: true,
            cancel: CancellationToken::new(),
            text_memory: None,
            copying: None,
        }
    }

    /// Answers messages until the client disconnects or the server stops.
    pub(super) async fn run(
        mut self,
        mut messages: Messages,
        stopping: &CancellationToken,
    ) -> io::Result<()> {
        let gone = messages.gone();
        loop {
            let message = tokio::select! {
                biased;
                () = gone.cancelled() => return Ok(()),
                () = self.stalled() => {
                    let now = Instant::now();
                    let since = now.checked_sub(self.stall_max()).unwrap_or(now);
                    self.prepared.close_suspended(since); // They hold slots that others wait for.
                    continue;
                }
                message = messages.next() => message,
                reason = self.copy_interrupted() => {
                    let ended = self.interrupt_copy(reason).await;
                    self.settle(ended).await?;
                    continue;
                }
                () = stopping.cancelled() => {
                    return self.end(PgError::new(ADMIN_SHUTDOWN, "the server stops")).await;
                }
                () = idle(self.service.limits().idle_max) => {
                    let text = "the connection was idle for longer than `idle_max` allows";
                    return self.end(PgError::new(IDLE_SESSION_TIMEOUT, text)).await;
                }
            };
            let message = match message {
                None => return Ok(()),
                Some(Ok(message)) => message,
                Some(Err(error)) => {
                    return self.end(PgError::new(PROTOCOL_VIOLATION, error.to_string())).await;
                }
            };
            if !self.service.users().is_unchanged(&self.session.user) {
                let text = "the user was removed or changed; log in again";
                return self.end(PgError::new(ADMIN_SHUTDOWN, text)).await;
            }
            // If the client has disconnected, its statement is dropped, which cancels it.
            let answered = tokio::select! {
                biased;
                () = gone.cancelled() => return Ok(()),
                answered = self.answer(message) => answered,
            };
            self.settle(answered).await?;
        }
    }

    /// Sends the error of a failed message of the extended protocol. Later ones are skipped until Sync.
    async fn settle(&mut self, answered: Result<(), Failure>) -> io::Result<()> {
        match answered {
            Ok(()) => Ok(()),
            Err(Failure::Connection(error)) => Err(error),
            Err(Failure::Statement(error)) => {
                self.fail(&error)?;
                self.writer.flush().await?; // The client may wait for it before it sends Sync.
                self.is_skipping = true;
                Ok(())
            }
        }
    }

    async fn answer(&mut self, message: Frontend) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_idle, false) {
            self.cancel = self.registered.current.begin();
        }
        if self.copying.is_some() {
            return self.copy(message).await;
        }
        match message {
            Frontend::Sync => {
                let has_failed = std::mem::take(&mut self.is_skipping);
                if self.transaction == TransactionStatus::Idle {
                    self.prepared.end_transaction(!has_failed);
                }
                Ok(self.ready().await?)
            }
            _ if self.is_skipping => Ok(()),
            Frontend::Query(text) => {
                let done = self.simple(&text).await;
                if self.copying.is_some() {
                    return Ok(self.writer.flush().await?); // It ends after the rows.
                }
                self.end_simple(done).await
            }
            Frontend::Flush => Ok(self.writer.flush().await?),
            // Parts of a COPY that has failed are ignored.
            Frontend::CopyData(_)
            | Frontend::CopyDone
            | Frontend::CopyFail(_)
            | Frontend::Terminate => Ok(()),
            Frontend::FunctionCall => {
                let error =
                    PgError::new(NOT_SUPPORTED, "function calls are not supported; use SELECT");
                self.fail(&error)?;
                Ok(self.ready().await?)
            }
            Frontend::Unreadable { is_query, error } => {
                let error = PgError::new(PROTOCOL_VIOLATION, error.to_string());
                if !is_query {
                    return Err(error.into());
                }
                self.fail(&error)?;
                Ok(self.ready().await?)
            }
            Frontend::Password(_) => {
                Err(PgError::new(PROTOCOL_VIOLATION, "the client has logged in already").into())
            }
            message => {
                self.extended(message).await?;
                if self.writer.is_full() {
                    self.writer.flush().await?; // A client need not send Sync.
                }
                Ok(())
            }
        }
    }

    /// Ends a text of the simple protocol.
    pub(super) async fn end_simple(&mut self, done: Result<(), Failure>) -> Result<(), Failure> {
        let has_succeeded = match done {
            Err(Failure::Statement(error)) => self.fail(&error).map(|()| false)?,
            other => other.map(|()| true)?,
        };
        if self.transaction == TransactionStatus::Idle {
            self.prepared.end_transaction(has_succeeded);
        }
        Ok(self.ready().await?)
    }

    /// Completes once a client has not requested more rows of a query for too long, whatever else it sends.
    async fn stalled(&self) {
        let end = self.prepared.suspended_since().and_then(|at| at.checked_add(self.stall_max()));
        match end {
            Some(end) => tokio::time::sleep_until(end).await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn stall_max(&self) -> Duration {
        self.service.limits().result_stall_max
    }

    /// Sends the error of a failed statement, and marks the transaction as failed.
    fn fail(&mut self, error: &PgError) -> io::Result<()> {
        if self.transaction == TransactionStatus::Transaction {
            self.transaction = TransactionStatus::Error;
        }
        self.writer.add(&error.message("ERROR"))
    }

    /// Sends the reason for the end of the connection, and closes it.
    async fn end(mut self, error: PgError) -> io::Result<()> {
        self.writer.add(&error.message("FATAL"))?;
        self.writer.close().await
    }

    /// Sends that the server is ready for the next statement.
    pub(super) async fn ready(&mut self) -> io::Result<()> {
        self.is_idle = true;
        self.text_memory = None;
        let status = ReadyForQuery::new(self.transaction);
        self.writer.add(&PgWireBackendMessage::ReadyForQuery(status))?;
        self.writer.flush().await
    }

    /// Parses a text, unless the client asks to cancel it.
    pub(super) async fn parse_text(&mut self, text: &str) -> Result<Vec<Statement>, PgError> {
        self.text_memory = None;
        self.text_memory = self.service.reserve_for_statements(text)?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled().into()),
            parsed = self.service.parse(&self.session, text) => Ok(parsed?),
        }
    }

    /// Plans a statement, unless the client asks to cancel it.
    pub(super) async fn plan(&self, statement: Statement, text: &str) -> Result<Planned, PgError> {
        let sql = Sql::Parsed(Box::new(statement), text);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(cancelled().into()),
            planned = self.service.plan(&self.session, sql) => Ok(planned?),
        }
    }

    /// A token that is cancelled if the client asks to cancel the statements that it has sent.
    pub(super) fn cancel_token(&self) -> CancellationToken {
        self.cancel.clone()
    }
}

/// Completes after some time without a message, or never without a limit.
async fn idle(idle_max: Option<Duration>) {
    match idle_max {
        Some(idle_max) => tokio::time::sleep(idle_max).await,
        None => std::future::pending().await,
    }
}
