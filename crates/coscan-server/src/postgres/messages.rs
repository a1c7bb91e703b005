//! The receiving half of a connection, which is read continuously, so that a disconnected client is noticed while its
//! query runs.

use std::sync::Arc;

use tokio::io::AsyncRead;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::postgres::decode::Frontend;
use crate::postgres::frame::{ReadError, read};
use crate::postgres::reader::ProtocolError;

/// The minimum size at which a message counts, in bytes.
const MESSAGE_BYTES_MIN: usize = 64;

/// The messages in the order of arrival.
#[derive(Debug)]
pub(super) struct Messages {
    received: mpsc::UnboundedReceiver<Received>,
    gone: CancellationToken,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct Received {
    message: Result<Frontend, ProtocolError>,
    /// The part of the read-ahead limit that the message takes.
    _room: Option<OwnedSemaphorePermit>,
}

impl Messages {
    /// Reads messages of at most `bytes_max`, and about the same number of bytes in advance.
    pub(super) fn of(mut from: impl AsyncRead + Unpin + Send + 'static, bytes_max: usize) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let gone = CancellationToken::new();
        let has_gone = gone.clone();
        let reader = tokio::spawn(async move {
            let room = Arc::new(Semaphore::new(bytes_max.max(MESSAGE_BYTES_MIN)));
            loop {
                let (message, length) = match read(&mut from, bytes_max).await {
                    Ok(None | Some((Frontend::Terminate, _))) | Err(ReadError::Io(_)) => break,
                    Ok(Some((message, length))) => (message, length.max(MESSAGE_BYTES_MIN)),
                    Err(ReadError::Protocol(error)) => {
                        // The error is sent to the client, and then the connection is closed.
                        sender.send(Received { message: Err(error), _room: None }).ok();
                        return;
                    }
                };
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                let room = Arc::clone(&room).acquire_many_owned(length).await.ok();
                if sender.send(Received { message: Ok(message), _room: room }).is_err() {
                    break;
                }
            }
            has_gone.cancel();
        });
        Self { received, gone, reader }
    }

    /// The next message, or `None` if the reader has ended.
    pub(super) async fn next(&mut self) -> Option<Result<Frontend, ProtocolError>> {
        self.received.recv().await.map(|received| received.message)
    }

    /// Cancelled once the client has disconnected.
    pub(super) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
