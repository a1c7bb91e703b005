//! The format of a connection, byte by byte.
//!
//! ```text
//! frame    length of the header: u32, little endian · header · the bytes of its pages, one after the other
//! header   a Frame, encoded by postcard
//! ```
//!
//! The first frame of a connection is a `Hello`, answered by an `Answer`; all others are [`Frame`]s. The other side
//! returns one byte for each [`Frame::Ping`]: [`ALIVE`] or [`UNREACHED`].

use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use coscan_runtime::ring::Message;
use coscan_runtime::{CirculatingMessage, PeerMessage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The most bytes of a header.
const HEADER_BYTES_MAX: usize = 4 << 20;

/// The most bytes of pages that are not expected and nevertheless read. Beyond that the connection is closed.
const UNWANTED_BYTES_MAX: u64 = 1 << 30;

/// The bytes that are skipped at a time.
const SKIP_BYTES: usize = 64 << 10;

/// The time for which nothing may come. A server that is alive asks every second whether this one is.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// The answer to a [`Frame::Ping`].
pub(crate) const ALIVE: u8 = 1;
/// The answer to a [`Frame::Ping`] of a server that has no connection back.
pub(crate) const UNREACHED: u8 = 2;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Frame {
    Message(PeerMessage),
    /// A message about the servers that are alive.
    Membership(Vec<u8>),
    /// A message to a neighbour on the ring. The bytes of a fragment follow.
    Circulating(CirculatingMessage),
    /// A question whether the other side is alive.
    Ping,
}

/// Encodes the length of a header, and the header.
///
/// # Errors
/// If it is too long.
pub(crate) fn encode(header: &impl Serialize) -> io::Result<Vec<u8>> {
    let encoded = postcard::to_extend(header, vec![0; 4]);
    let mut encoded = encoded.map_err(|error| invalid(error.to_string()))?;
    let length = encoded.len() - 4;
    if length > HEADER_BYTES_MAX {
        return Err(invalid(format!("a message of {length} bytes is too long")));
    }
    encoded[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(encoded)
}

/// Reads a header; `None` at the end of the connection.
///
/// # Errors
/// If the connection breaks, or something other than a header comes.
pub(crate) async fn read_header<H: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<H>> {
    let length = match read_bytes(from, 4).await {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if length > HEADER_BYTES_MAX {
        return Err(invalid(format!("a header of {length} bytes is too long")));
    }
    let header = read_bytes(from, length).await?;
    postcard::from_bytes(&header).map(Some).map_err(|error| invalid(error.to_string()))
}

/// The sizes of the pages that follow a message.
///
/// # Errors
/// If they are invalid.
pub(crate) fn page_sizes(message: &PeerMessage) -> io::Result<Vec<usize>> {
    let Message::Pages { pages, .. } = message else { return Ok(Vec::new()) };
    let size = |range: &std::ops::Range<u64>| {
        range.end.checked_sub(range.start).and_then(|bytes| usize::try_from(bytes).ok())
    };
    let sizes: Option<Vec<_>> = pages.iter().map(size).collect();
    sizes.ok_or_else(|| invalid("a page ends before it begins".to_owned()))
}

/// Reads pages of these sizes. The caller has space for them.
pub(crate) async fn read_pages(
    from: &mut (impl AsyncRead + Unpin),
    sizes: &[usize],
) -> io::Result<Vec<Bytes>> {
    let mut pages = Vec::with_capacity(sizes.len());
    for &size in sizes {
        pages.push(read_page(from, size).await?);
    }
    Ok(pages)
}

/// Reads a page. The caller has space for it.
pub(crate) async fn read_page(
    from: &mut (impl AsyncRead + Unpin),
    size: usize,
) -> io::Result<Bytes> {
    let mut page = BytesMut::with_capacity(size);
    fill(from, size, &mut page).await?;
    Ok(page.freeze())
}

/// Reads pages that are no longer needed.
pub(crate) async fn skip_pages(
    from: &mut (impl AsyncRead + Unpin),
    sizes: &[usize],
) -> io::Result<()> {
    let sum = sizes.iter().try_fold(0_u64, |sum, &size| sum.checked_add(size as u64));
    let bytes = sum.filter(|&bytes| bytes <= UNWANTED_BYTES_MAX);
    let bytes = bytes.ok_or_else(|| invalid("more pages than anybody asked for".to_owned()))?;
    let mut scratch = BytesMut::with_capacity(SKIP_BYTES);
    let mut left = bytes;
    while left > 0 {
        scratch.clear();
        left -= read_some(from, left.min(SKIP_BYTES as u64), &mut scratch).await?;
    }
    Ok(())
}

/// Writes everything at once as far as possible: TLS fills its records across pages.
pub(crate) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    header: &[u8],
    pages: &[Bytes],
) -> io::Result<()> {
    let parts = std::iter::once(header).chain(pages.iter().map(|page| &page[..]));
    let mut parts: Vec<_> = parts.map(IoSlice::new).collect();
    let mut left = &mut parts[..];
    while !left.is_empty() {
        match to.write_vectored(left).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => IoSlice::advance_slices(&mut left, written),
        }
    }
    Ok(())
}

/// The total bytes of pages.
pub(crate) fn bytes_of(pages: &[Bytes]) -> u64 {
    pages.iter().map(|page| page.len() as u64).sum()
}

async fn read_bytes(from: &mut (impl AsyncRead + Unpin), size: usize) -> io::Result<Bytes> {
    // Space is taken as the bytes come: a length alone costs nothing.
    const STEP: usize = 1 << 20;
    let mut bytes = BytesMut::with_capacity(size.min(STEP));
    while bytes.len() < size {
        let step = (size - bytes.len()).min(STEP);
        bytes.reserve(step);
        let filled = bytes.len() + step;
        fill(from, filled, &mut bytes).await?;
    }
    Ok(bytes.freeze())
}

/// Reads until there are this many bytes. There is space for them.
async fn fill(
    from: &mut (impl AsyncRead + Unpin),
    size: usize,
    bytes: &mut BytesMut,
) -> io::Result<()> {
    while bytes.len() < size {
        read_some(from, (size - bytes.len()) as u64, bytes).await?;
    }
    Ok(())
}

/// Reads at least one byte, and at most this many.
async fn read_some(
    from: &mut (impl AsyncRead + Unpin),
    bytes_max: u64,
    into: &mut BytesMut,
) -> io::Result<u64> {
    let mut from = from.take(bytes_max);
    match tokio::time::timeout(SILENCE_MAX, from.read_buf(into)).await {
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
        Ok(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => Ok(read? as u64),
    }
}

pub(crate) fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
