//! Sends rows to the client, which may ask to cancel them.

use std::future::Future;
use std::pin::pin;

use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::rows::Rows;
use crate::queries::QueryId;

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Sends rows of a result, up to `rows_max` (0: all). Returns their number, and whether all were sent.
    pub(super) async fn send_rows(
        &mut self,
        rows: &mut Rows,
        rows_max: u32,
        cancel: &CancellationToken,
    ) -> Result<(usize, bool), Failure> {
        let rows_max = if rows_max == 0 { usize::MAX } else { rows_max as usize };
        let Self { service, session, writer, .. } = self;
        let (id, mut sent) = (rows.id(), 0);
        let cancelled = |id: QueryId| {
            service.queries().cancel(id, &session.user);
        };
        while sent < rows_max {
            if !cancelling(cancel, id, cancelled, rows.has_more()).await? {
                return Ok((sent, true));
            }
            let (encoded, count) = rows.take(rows_max - sent);
            writer.add_encoded(&encoded);
            sent += count;
            if writer.is_full() {
                cancelling(cancel, id, cancelled, writer.flush()).await?;
            }
        }
        Ok((sent, false))
    }
}

/// Does some work of a query. If the client asks to cancel, the query frees its resources, even while the client reads
/// no bytes. The work continues, and gets the error.
async fn cancelling<T>(
    cancel: &CancellationToken,
    id: Option<QueryId>,
    cancelled: impl Fn(QueryId),
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        () = cancel.cancelled() => {
            if let Some(id) = id {
                cancelled(id);
            }
        }
        done = &mut work => return done,
    }
    work.await
}
