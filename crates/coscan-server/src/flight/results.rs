//! Results on their way to clients.
//!
//! gRPC polls a result only as the client takes bytes, so that a batch or two are under way. A client that takes none
//! for too long holds up a query: a task of the result notices, and cancels the query.

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

use crate::engine::{Engine, Session};
use crate::flight::plain::{pieces, plain_batch};
use crate::flight::status::unwritable;
use crate::queries::{QueryId, RunningQuery};

/// About how long messages are, in bytes: some clients take no more than 4 MiB, and a row may be long.
const MESSAGE_BYTES: usize = 2 << 20;

/// A result as it goes to a client.
pub(super) type FlightDataStream =
    Pin<Box<dyn Stream<Item = Result<FlightData, Status>> + Send + 'static>>;

/// A result that is there already.
pub(super) fn ready(batch: RecordBatch) -> FlightDataStream {
    let schema = batch.schema();
    Box::pin(encode(schema, stream::iter([Ok(batch)])).map(|data| data.map_err(Status::from)))
}

/// The result of a query under the schema that its client was told; the plan that runs may know better which columns
/// have no NULLs, and clients compare. The query is cancelled when the client takes nothing of it for too
/// long, or `cancel` is.
pub(super) fn of_query(
    engine: &Arc<Engine>,
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
    let client = Arc::new(Client { since: Mutex::new(Some(Instant::now())), ..Client::default() });
    let ended = CancellationToken::new();
    let watch = Watch {
        engine: Arc::clone(engine),
        session: Arc::clone(session),
        id,
        client: Arc::clone(&client),
    };
    tokio::spawn(watch.run(cancel, ended.clone()));
    Box::pin(Watched { encoder, client, _ended: ended.drop_guard() })
}

fn encode(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> FlightDataEncoder {
    FlightDataEncoderBuilder::new()
        .with_schema(schema)
        .with_dictionary_handling(DictionaryHandling::Resend)
        // Batches are in pieces already; the encoder would count whole buffers of which they are a part.
        .with_max_flight_data_size(usize::MAX)
        .build(batches)
}

/// What is known of the client of a result.
#[derive(Debug, Default)]
struct Client {
    /// Since when the client has to take a message; `None` while it waits for one.
    since: Mutex<Option<Instant>>,
    has_stalled: AtomicBool,
}

impl Client {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a query whose client takes nothing, or no longer wants it.
struct Watch {
    engine: Arc<Engine>,
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
            () = self.stalled(self.engine.limits().result_stall_max) => {
                self.client.has_stalled.store(true, Ordering::Relaxed);
            }
        }
        self.engine.queries().cancel(self.id, &self.session.user);
    }

    /// Completes once the client has taken nothing for so long.
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

/// A result that says when its client takes a message.
struct Watched {
    encoder: FlightDataEncoder,
    client: Arc<Client>,
    _ended: DropGuard,
}

impl Stream for Watched {
    type Item = Result<FlightData, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        *self.client.since() = None;
        let polled = self.encoder.poll_next_unpin(context);
        if polled.is_ready() {
            *self.client.since() = Some(Instant::now());
        }
        let has_stalled = self.client.has_stalled.load(Ordering::Relaxed);
        polled.map_err(|error| match Status::from(error) {
            _ if has_stalled => Status::deadline_exceeded(
                "the client took nothing of the result for `result_stall_max`",
            ),
            error => error,
        })
    }
}

/// A schema in the form that Flight SQL has it in messages.
pub(super) fn schema_bytes(schema: &arrow::datatypes::Schema) -> Result<bytes::Bytes, Status> {
    let options = arrow_ipc::writer::IpcWriteOptions::default();
    let message =
        arrow_flight::IpcMessage::try_from(arrow_flight::SchemaAsIpc::new(schema, &options));
    message.map(|message| message.0).map_err(unwritable)
}
