//! `COPY … FROM STDIN` inserts rows that the client sends as text or CSV.

use std::future::pending;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::CopyInResponse;
use pgwire::messages::response::CommandComplete;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::copy_rows::CopyReader;
use crate::postgres::copy_statements::CopyIn;
use crate::postgres::copying::{Copying, Inserting, Progress, not_inserted};
use crate::postgres::decode::Frontend;
use crate::postgres::sqlstate::{PgError, QUERY_CANCELED};
use crate::queries::cancelled;
use crate::sql::RunningCopy;

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Begins a COPY into a table, and asks for the rows.
    pub(super) async fn start_copy(
        &mut self,
        copy: &CopyIn,
        is_simple: bool,
    ) -> Result<(), Failure> {
        let cancel = self.cancel_token();
        let RunningCopy { query, rows, columns } = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled().into()),
            running = self.service.copy_into(&self.session, &copy.table, &copy.columns) => running?,
        };
        let inserting = Some(Inserting(tokio::spawn(query.changed_rows())));
        let formats = vec![0; columns.fields().len()];
        let count = i16::try_from(formats.len()).unwrap_or(i16::MAX);
        let reader = CopyReader::new(columns, copy.form.clone(), copy.has_header);
        self.copying = Some(Copying { reader, rows, inserting, is_simple, last: Instant::now() });
        let response = CopyInResponse::new(0, count, formats);
        self.writer.add(&PgWireBackendMessage::CopyInResponse(response))?;
        Ok(self.writer.flush().await?)
    }

    /// Answers a message while rows are copied.
    pub(super) async fn copy(&mut self, message: Frontend) -> Result<(), Failure> {
        let Some(mut copying) = self.copying.take() else { return Ok(()) };
        let (is_simple, cancel) = (copying.is_simple, self.cancel_token());
        let done = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled().into()),
            done = copying.receive(message) => done,
        };
        match done {
            Ok(Progress::GoesOn) => {
                copying.last = Instant::now();
                self.copying = Some(copying);
                return Ok(());
            }
            Ok(Progress::HasAllRows) => {}
            Err(error) => return self.end_copy(is_simple, Err(error.into())).await,
        }
        let inserted = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            inserted = copying.ended() => inserted,
        };
        let done = match inserted {
            Ok(count) => {
                let done = CommandComplete::new(format!("COPY {count}"));
                self.writer.add(&PgWireBackendMessage::CommandComplete(done)).map_err(Failure::from)
            }
            Err(error) => Err(error.into()),
        };
        self.end_copy(is_simple, done).await
    }

    /// Completes when a COPY must end although the client has sent no more: it asks to cancel, sends nothing for too long, or the
    /// query has ended early.
    pub(super) async fn copy_interrupted(&self) -> Option<PgError> {
        let Some(Copying { rows, last, .. }) = &self.copying else { return pending().await };
        let stalled = last.checked_add(self.stall_max());
        let stalled = async {
            match stalled {
                Some(at) => tokio::time::sleep_until(at).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.cancel_token().cancelled_owned() => Some(cancelled().into()),
            () = rows.closed() => None,
            () = stalled => {
                let text = "the client has sent no rows of COPY for longer than `result_stall_max` allows";
                Some(PgError::new(QUERY_CANCELED, text))
            }
        }
    }

    /// Ends a COPY that was interrupted, for a reason or for that of its query.
    pub(super) async fn interrupt_copy(&mut self, reason: Option<PgError>) -> Result<(), Failure> {
        let Some(mut copying) = self.copying.take() else { return Ok(()) };
        let error = match reason {
            Some(reason) => reason,
            None => copying.ended().await.err().unwrap_or_else(not_inserted).into(),
        };
        self.end_copy(copying.is_simple, Err(error.into())).await
    }

    async fn end_copy(
        &mut self,
        is_simple: bool,
        done: Result<(), Failure>,
    ) -> Result<(), Failure> {
        if is_simple { self.end_simple(done).await } else { done }
    }
}
