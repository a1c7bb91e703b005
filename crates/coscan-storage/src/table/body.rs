//! Cuts the body of a response into pages.
//!
//! Every page has its own memory. If pages were slices of one body, evicting one would free nothing, and the pool
//! would hold more than it counts.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::time::SystemTime;

use bytes::{Buf, Bytes, BytesMut};
use futures::TryStreamExt;
use object_store::{Error as StoreError, GetResult, GetResultPayload};

/// The requested ranges, as far as the response contains them.
pub(super) struct Body {
    pages: Vec<Bytes>,
    is_complete: bool,
    /// The bytes of the response, gaps included.
    pub(super) total_bytes: u64,
}

impl Body {
    /// One buffer per range; `None` if the response was too short.
    pub(super) fn into_pages(self) -> Option<Vec<Bytes>> {
        self.is_complete.then_some(self.pages)
    }
}

/// Reads the body and cuts out the ranges: offsets in the file, ascending, without overlap.
pub(super) async fn split_body(
    result: GetResult,
    ranges: &[Range<u64>],
) -> Result<Body, StoreError> {
    let start = result.range.start;
    match result.payload {
        GetResultPayload::File(file, _) => {
            let (ranges, meta) = (ranges.to_vec(), result.meta);
            let read = move || {
                let opened = file.try_clone()?;
                let body = read_file(file, &ranges)?;
                // It may have been overwritten in place since it was checked.
                let found = opened.metadata()?;
                let is_unchanged = found.len() == meta.size
                    && found.modified()? == SystemTime::from(meta.last_modified);
                Ok(is_unchanged.then_some(body).ok_or(meta.location))
            };
            blocking(read).await?.map_err(|location| StoreError::Precondition {
                path: location.to_string(),
                source: "it was overwritten while it was read".into(),
            })
        }
        GetResultPayload::Stream(mut stream) => {
            let mut cutter = Cutter::new(start, ranges);
            while let Some(bytes) = stream.try_next().await? {
                cutter.push(bytes);
            }
            Ok(cutter.finish())
        }
    }
}

/// Runs file reads away from the asynchronous threads, or in place if there are none.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await?,
        Err(_) => work(),
    };
    done.map_err(|error| StoreError::Generic { store: "LocalFileSystem", source: Box::new(error) })
}

fn read_file(mut file: File, ranges: &[Range<u64>]) -> std::io::Result<Body> {
    let mut body =
        Body { pages: Vec::with_capacity(ranges.len()), is_complete: true, total_bytes: 0 };
    for range in ranges {
        let page_bytes = range.end - range.start;
        // Read through `take` so that the buffer is not zeroed first.
        let mut page =
            Vec::with_capacity(usize::try_from(page_bytes).map_err(std::io::Error::other)?);
        file.seek(SeekFrom::Start(range.start))?;
        let read_bytes = (&mut file).take(page_bytes).read_to_end(&mut page)? as u64;
        body.total_bytes += read_bytes;
        body.is_complete &= read_bytes == page_bytes;
        body.pages.push(page.into());
    }
    Ok(body)
}

/// The size below which pages are copied, since buffers are larger than their content by up to two blocks.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// The bytes in memory of their own, hardly larger than they are.
fn alone(bytes: Bytes) -> Bytes {
    if bytes.len() < COPIED_BYTES_MAX {
        return Bytes::copy_from_slice(&bytes);
    }
    match bytes.try_into_mut() {
        Ok(whole) if whole.capacity() - whole.len() <= whole.len() / 8 => whole.freeze(),
        Ok(part) => Bytes::copy_from_slice(&part),
        Err(shared) => Bytes::copy_from_slice(&shared),
    }
}

/// Cuts pages out of a stream of buffers.
struct Cutter<'a> {
    ranges: &'a [Range<u64>],
    pages: Vec<Bytes>,
    /// The page that is being filled.
    page: BytesMut,
    start: u64,
    /// The offset in the file of the next byte of the stream.
    position: u64,
}

impl<'a> Cutter<'a> {
    fn new(start: u64, ranges: &'a [Range<u64>]) -> Self {
        let pages = Vec::with_capacity(ranges.len());
        Self { ranges, pages, page: BytesMut::new(), start, position: start }
    }

    fn push(&mut self, mut bytes: Bytes) {
        while let Some(range) = self.ranges.get(self.pages.len()) {
            self.skip(&mut bytes, range.start);
            let missing =
                usize::try_from(range.end - self.position.min(range.end)).unwrap_or(usize::MAX);
            if bytes.is_empty() && missing > 0 {
                return;
            }
            let taken = missing.min(bytes.len());
            if taken == missing && self.page.is_empty() && self.ranges.len() == 1 {
                // The only page arrived in one buffer.
                self.pages.push(alone(bytes.split_to(taken)));
                self.position += taken as u64;
                continue;
            }
            if self.page.capacity() == 0 {
                self.page.reserve(missing);
            }
            self.page.extend_from_slice(&bytes.split_to(taken));
            self.position += taken as u64;
            if taken < missing {
                return;
            }
            self.pages.push(std::mem::take(&mut self.page).freeze());
        }
        self.position += bytes.len() as u64;
    }

    /// Drops the bytes before an offset.
    fn skip(&mut self, bytes: &mut Bytes, offset: u64) {
        let gap = offset.saturating_sub(self.position).min(bytes.len() as u64);
        bytes.advance(usize::try_from(gap).expect("a gap within a buffer"));
        self.position += gap;
    }

    fn finish(mut self) -> Body {
        self.push(Bytes::new()); // pages of no bytes at the end
        let is_complete = self.pages.len() == self.ranges.len();
        Body { pages: self.pages, is_complete, total_bytes: self.position - self.start }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn pages_are_cut_out_wherever_the_buffers_end() {
        let body: Vec<u8> = (0..100).collect();
        let ranges = [10..20, 20..21, 25..60, 60..60, 90..100];
        for piece_bytes in [1, 2, 7, 50, 90] {
            let mut cutter = Cutter::new(10, &ranges);
            body[10..]
                .chunks(piece_bytes)
                .for_each(|piece| cutter.push(Bytes::copy_from_slice(piece)));
            let cut = cutter.finish();
            assert_eq!(cut.total_bytes, 90);
            let pages = cut.into_pages().expect("all bytes came");
            for (page, range) in pages.iter().zip(&ranges) {
                assert_eq!(page[..], body[range.start as usize..range.end as usize]);
            }
        }
    }

    #[test]
    fn a_page_that_comes_alone_keeps_no_more_than_itself() {
        for (page_bytes, buffer_bytes) in [(100, 12 << 10), (100_000, 1 << 20)] {
            let buffer = Bytes::from(vec![7; buffer_bytes]);
            let start = buffer.as_ptr();
            let range = 5000..5000 + page_bytes as u64;
            let mut cutter = Cutter::new(5000, std::slice::from_ref(&range));
            cutter.push(buffer.slice(4096..4096 + page_bytes));
            drop(buffer);
            let page = cutter.finish().into_pages().expect("it came").remove(0);
            assert_eq!(page.len(), page_bytes);
            assert_ne!(page.as_ptr().addr(), start.addr() + 4096, "it is still in the buffer");
        }
    }

    #[test]
    fn a_short_body_is_noticed() {
        let ranges = [0..10, 10..20];
        let mut cutter = Cutter::new(0, &ranges);
        cutter.push(Bytes::from(vec![0; 19]));
        let cut = cutter.finish();
        assert_eq!(cut.total_bytes, 19);
        assert!(cut.into_pages().is_none());
    }

    #[test]
    fn a_file_that_has_become_short_is_noticed() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[7; 19]).expect("room for 19 bytes");
        let reopen = || file.try_clone().expect("the same file");
        let body = read_file(reopen(), &[2..10, 10..20]).expect("a short read is no error");
        assert_eq!(body.total_bytes, 17);
        assert!(body.into_pages().is_none());
        let body = read_file(reopen(), &[2..10, 15..19]).expect("all bytes are there");
        assert_eq!(body.into_pages().expect("all bytes came"), [&[7; 8][..], &[7; 4]]);
    }
}
