//! The boundaries between messages.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::postgres::decode::{Frontend, decode};
use crate::postgres::reader::ProtocolError;

/// The size of the parts in which a long message is read. Memory grows with the received bytes, not with the announced
/// length.
const PIECE_BYTES: usize = 64 << 10;

/// The reason why there is no message.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The connection is broken, or ends within a message.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The client violates the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

/// Reads a message of at most `bytes_max`. Returns it with its length, or `None` at the end of the connection. Reads no
/// byte after it.
pub(super) async fn read(
    from: &mut (impl AsyncRead + Unpin),
    bytes_max: usize,
) -> Result<Option<(Frontend, usize)>, ReadError> {
    let kind = match from.read_u8().await {
        Ok(kind) => kind,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let body = read_body(from, bytes_max).await?;
    let length = body.len();
    Ok(Some((decode(kind, body)?, length)))
}

/// Reads a length, and the rest of that length after its own four bytes.
pub(super) async fn read_body(
    from: &mut (impl AsyncRead + Unpin),
    bytes_max: usize,
) -> Result<Bytes, ReadError> {
    let length = usize::try_from(from.read_i32().await?).ok().and_then(|all| all.checked_sub(4));
    let length = length.ok_or(ProtocolError("the length of a message is less than 4"))?;
    if length > bytes_max {
        return Err(ProtocolError("a message is longer than this server accepts").into());
    }
    let mut body = BytesMut::with_capacity(length.min(PIECE_BYTES));
    let mut limited = from.take(length as u64);
    while body.len() < length {
        if limited.read_buf(&mut body).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if body.len() == body.capacity() {
            body.reserve((length - body.len()).min(PIECE_BYTES));
        }
    }
    Ok(body.freeze())
}
