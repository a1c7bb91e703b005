//! Invalid frames are distinguished from ones that are cut off, before any memory is taken for them.

use std::io::ErrorKind;

use bytes::Bytes;
use coscan_runtime::PeerMessage;
use coscan_runtime::ring::{GetId, Message};
use tokio::io::{AsyncWriteExt, duplex, empty};

use super::strangers::file;
use crate::frame::{Frame, page_sizes, read_header, read_pages, skip_pages};

async fn header_error(bytes: &[u8]) -> ErrorKind {
    read_header::<Frame>(&mut &bytes[..]).await.unwrap_err().kind()
}

#[tokio::test]
async fn headers_are_checked() {
    assert_eq!(header_error(&u32::MAX.to_le_bytes()).await, ErrorKind::InvalidData, "too long");
    let garbage = [&100_u32.to_le_bytes()[..], &[0xff; 100]].concat();
    assert_eq!(header_error(&garbage).await, ErrorKind::InvalidData, "no frame");
    assert_eq!(header_error(&garbage[..50]).await, ErrorKind::UnexpectedEof, "cut off");
}

#[test]
fn a_page_does_not_end_before_it_begins() {
    let backwards = std::ops::Range { start: 9, end: 1 };
    let pages = |page| Message::Pages { get: GetId(1), file: file("a", 1, "b"), pages: vec![page] };
    assert_eq!(page_sizes(&pages(backwards)).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(page_sizes(&pages(1..9)).unwrap(), [8]);
    let others: PeerMessage = Message::End { scan: 1 };
    assert!(page_sizes(&others).unwrap().is_empty());
}

#[tokio::test]
async fn what_nobody_asked_for_is_skipped_within_limits() {
    let skipped =
        async |sizes: &[usize]| skip_pages(&mut empty(), sizes).await.map_err(|error| error.kind());
    assert_eq!(skipped(&[]).await, Ok(()));
    assert_eq!(skipped(&[1 << 29, 1 << 29]).await, Err(ErrorKind::UnexpectedEof), "it reads them");
    assert_eq!(skipped(&[1 << 30, 1]).await, Err(ErrorKind::InvalidData));
    assert_eq!(skipped(&[usize::MAX; 3]).await, Err(ErrorKind::InvalidData));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_stops_coming_is_given_up() {
    let (mut sender, mut receiver) = duplex(1_000);
    sender.write_all(b"abcdefgh").await.unwrap();
    let pages = read_pages(&mut receiver, &[3, 2]).await.unwrap();
    assert_eq!(pages, [&b"abc"[..], b"de"].map(Bytes::from_static));
    let stopped = read_pages(&mut receiver, &[100]).await;
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::TimedOut);
}
