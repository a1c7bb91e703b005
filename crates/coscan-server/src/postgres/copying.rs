//! The state of a `COPY … FROM STDIN` whose rows are being received.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::postgres::copy_rows::CopyReader;
use crate::postgres::decode::Frontend;
use crate::postgres::sqlstate::{PROTOCOL_VIOLATION, PgError, QUERY_CANCELED};
use crate::queries::{ErrorKind, QueryError};
use crate::sql::Copied;

/// A COPY into a table whose rows are being received.
pub(super) struct Copying {
    pub(super) reader: CopyReader,
    pub(super) rows: mpsc::Sender<Copied>,
    /// The query that inserts the rows, and returns their number. `None` after it has ended.
    pub(super) inserting: Option<Inserting>,
    /// Whether it is a statement of the simple protocol.
    pub(super) is_simple: bool,
    /// The last time that the client has sent something.
    pub(super) last: Instant,
}

/// A query that ends when this is dropped.
pub(super) struct Inserting(pub(super) JoinHandle<Result<u64, QueryError>>);

impl Drop for Inserting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether a COPY goes on.
pub(super) enum Progress {
    GoesOn,
    HasAllRows,
}

impl Copying {
    pub(super) async fn receive(&mut self, message: Frontend) -> Result<Progress, PgError> {
        let is_last = match message {
            Frontend::CopyData(bytes) => {
                self.reader.read(&bytes)?;
                false
            }
            Frontend::CopyDone => {
                self.reader.finish()?;
                true
            }
            Frontend::CopyFail(reason) => {
                let text = format!("the client has given COPY up: {reason}");
                return Err(PgError::new(QUERY_CANCELED, text));
            }
            Frontend::Flush | Frontend::Sync => return Ok(Progress::GoesOn),
            _ => {
                let text = "this message is not expected while rows are copied";
                return Err(PgError::new(PROTOCOL_VIOLATION, text));
            }
        };
        while let Some(batch) = self.reader.next_batch(is_last)? {
            self.send(Copied::Rows(batch)).await?;
        }
        if !is_last {
            return Ok(Progress::GoesOn);
        }
        self.send(Copied::End).await?;
        Ok(Progress::HasAllRows)
    }

    async fn send(&mut self, part: Copied) -> Result<(), QueryError> {
        match self.rows.send(part).await {
            Ok(()) => Ok(()),
            // The query has ended early, and says why.
            Err(_) => Err(self.ended().await.err().unwrap_or_else(not_inserted)),
        }
    }

    /// The number of inserted rows, once the query has ended.
    pub(super) async fn ended(&mut self) -> Result<u64, QueryError> {
        match self.inserting.take() {
            Some(mut inserting) => (&mut inserting.0).await.unwrap_or_else(|_| Err(not_inserted())),
            None => Err(not_inserted()),
        }
    }
}

pub(super) fn not_inserted() -> QueryError {
    QueryError::new(ErrorKind::Internal, "the rows were not inserted")
}
