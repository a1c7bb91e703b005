//! Results as streams of Flight data.
//!
//! gRPC polls a result only as the client takes bytes, so that only a batch or two are in flight. If a client takes
//! none for too long, a task of the result cancels the query.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoder, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use futures::{Stream, StreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;

use crate::flight::status::unwritable;
use crate::flight::wire_types::{pieces, plain_batch};
use crate::queries::{QueryId, RunningQuery};
use crate::sql::{Session, SqlService};

/// The target size of messages, in bytes. Some clients accept at most 4 MiB, and a row may be long.
const MESSAGE_BYTES: usize = 2 << 20;

/// A result as it is sent to a client.
pub(super) type FlightDataStream =
    Pin<Box<dyn Stream<Item = Result<FlightData, Status>> + Send + 'static>>;

/// A result that is complete already.
pub(super) fn ready(batch: RecordBatch) -> FlightDataStream {
    let schema = batch.schema();
    Box::pin(encode(schema, stream::iter([Ok(batch)])).map(|data| data.map_err(Status::from)))
}

/// The result of a query, with the schema that GetFlightInfo returned. Clients compare the two schemas, and the running
/// plan may declare more columns as not null. The query is cancelled when its client reads nothing for too long, or
/// when `cancel` is cancelled.
pub(super) fn of_query(
    service: &Arc<SqlService>,
    session: &Arc<Session>,
    query: RunningQuery,
    schema: SchemaRef,
    cancel: CancellationToken,
) -> FlightDataStream {
    let id = query.id;
    let plain = Arc::clone(&schema);
    let batches = query.flat_map(move |batch| {
        let batch = batch.map_err(|error| FlightError::from(Status::from(error)));
        let plain = batch.and_then(|batch| Ok(plain_batch(&batch, &plain)?));
        let (pieces, error) = match plain {
            Ok(batch) => (pieces(&batch, MESSAGE_BYTES), None),
            Err(error) => (Vec::new(), Some(Err(error))),
        };
        stream::iter(pieces.into_iter().map(Ok).chain(error))
    });
    let encoder = encode(schema, batches);
    let Some(id) = id else { return Box::pin(encoder.map(|data| data.map_err(Status::from))) };
    let client = Arc::new(Client {
        since: Mutex::new(Some(Instant::now())),
        encoder: Mutex::new(Some(encoder)),
        has_stalled: AtomicBool::new(false),
    });
    let ended = CancellationToken::new();
    let watch = Watch {
        service: Arc::clone(service),
        session: Arc::clone(session),
        id,
        client: Arc::clone(&client),
    };
    tokio::spawn(watch.run(cancel, ended.clone()));
    Box::pin(Watched { client, _ended: ended.drop_guard() })
}

fn encode(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> FlightDataEncoder {
    FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .with_dictionary_handling(DictionaryHandling::Resend)
        // Batches are split already. The encoder would count the whole buffers that contain them.
        .with_max_flight_data_size(usize::MAX)
        .build(batches)
}

/// A result and the state of its client.
struct Client {
    /// `None` once the client has stalled. gRPC keeps the stream, but the result holds nothing any more.
    encoder: Mutex<Option<FlightDataEncoder>>,
    /// The time since which a message waits for the client. `None` while the client waits for one.
    since: Mutex<Option<Instant>>,
    has_stalled: AtomicBool,
}

impl Client {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encoder(&self) -> MutexGuard<'_, Option<FlightDataEncoder>> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels a query if its client stalls or cancels it.
struct Watch {
    service: Arc<SqlService>,
    session: Arc<Session>,
    id: QueryId,
    client: Arc<Client>,
}

impl Watch {
    async fn run(self, cancel: CancellationToken, ended: CancellationToken) {
        tokio::select! {
            biased;
            () = ended.cancelled() => return,
            () = cancel.cancelled() => {}
            () = self.stalled(self.service.limits().result_stall_max) => {
                self.client.has_stalled.store(true, Ordering::Relaxed);
                self.service.queries().cancel(self.id, &self.session.user);
                let held = self.client.encoder().take();
                drop(held); // Not under the lock.
                return;
            }
        }
        self.service.queries().cancel(self.id, &self.session.user);
    }

    /// Completes once the client has read nothing for this time.
    async fn stalled(&self, stall_max: Duration) {
        loop {
            let since = *self.client.since();
            let waited = since.map_or(Duration::ZERO, |since| since.elapsed());
            match stall_max.checked_sub(waited).filter(|left| !left.is_zero()) {
                Some(left) => tokio::time::sleep(left).await,
                None => return,
            }
        }
    }
}

/// A result that records when its client takes a message.
struct Watched {
    client: Arc<Client>,
    _ended: DropGuard,
}

impl Stream for Watched {
    type Item = Result<FlightData, Status>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        *self.client.since() = None;
        let polled = match self.client.encoder().as_mut() {
            Some(encoder) => encoder.poll_next_unpin(context).map_err(Status::from),
            None => Poll::Ready(None),
        };
        if polled.is_ready() {
            *self.client.since() = Some(Instant::now());
        }
        // The error is returned once. Then the result ends.
        if self.client.has_stalled.swap(false, Ordering::Relaxed) {
            return Poll::Ready(Some(Err(Status::deadline_exceeded(
                "the client took nothing of the result for `result_stall_max`",
            ))));
        }
        polled
    }
}

/// A schema, encoded as in messages of Flight SQL.
pub(super) fn schema_bytes(schema: &arrow::datatypes::Schema) -> Result<bytes::Bytes, Status> {
    let options = arrow_ipc::writer::IpcWriteOptions::default();
    let message =
        arrow_flight::IpcMessage::try_from(arrow_flight::SchemaAsIpc::new(schema, &options));
    message.map(|message| message.0).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use arrow::array::UInt8Array;
    use arrow::buffer::{Buffer, ScalarBuffer};
    use bytes::Bytes;
    use coscan_runtime::{BufferManager, Options};
    use tonic::Code;

    use super::*;
    use crate::config::Limits;
    use crate::queries::Deadline;
    use crate::sql::Proof;
    use crate::users::Users;

    /// Bytes with a reference count that tells whether they are held.
    struct Held(Vec<u8>, #[expect(dead_code, reason = "counted")] Arc<()>);

    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_result_holds_nothing_though_its_stream_is_kept() {
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let limits = Limits::default();
        let users = Arc::new(Users::anyone());
        let service = Arc::new(SqlService::new(&manager, users, &limits).unwrap());
        let session = Arc::new(service.login("ann", Proof::None).await.unwrap());
        let held = Arc::new(());
        let bytes = Bytes::from_owner(Held(vec![7; 5 * MESSAGE_BYTES], Arc::clone(&held)));
        let column = UInt8Array::new(ScalarBuffer::from(Buffer::from(bytes)), None);
        let batch = RecordBatch::try_from_iter([("x", Arc::new(column) as _)]).unwrap();
        let schema = batch.schema();
        let registration = service.queries().register(&session.user, "SELECT x");
        registration.start();
        let batches = stream::iter([Ok(batch)]).boxed();
        let deadline = Deadline { at: None, setting: "" };
        let query = RunningQuery::start(registration, Arc::clone(&schema), batches, deadline);
        let mut result = of_query(&service, &session, query, schema, CancellationToken::new());
        // These are the schema and the first of several messages.
        for _ in 0..2 {
            result.next().await.unwrap().unwrap();
        }
        tokio::time::sleep(limits.result_stall_max / 2).await;
        assert!(Arc::strong_count(&held) > 1, "the client may still take the rest");
        tokio::time::sleep(limits.result_stall_max).await;
        assert_eq!(Arc::strong_count(&held), 1);
        let error = result.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(result.next().await.is_none());
    }
}
