//! The last messages of a server.

use tokio::io::{AsyncReadExt, duplex};
use tokio_util::sync::CancellationToken;

use crate::link::{Link, LinkStatus, Queued};

/// A message that is recognized by its content.
fn message(filled_with: u8, bytes: usize) -> Queued {
    Queued::Membership(vec![filled_with; bytes])
}

/// The bytes that a server receives from another that sends these messages and is stopped once the first bytes have
/// come.
async fn heard(messages: impl IntoIterator<Item = Queued>) -> Vec<u8> {
    let (link, mut queue, _fragments) = Link::new("peer".to_owned());
    queue.state.status.send_replace(LinkStatus::Up);
    messages.into_iter().for_each(|message| link.send(message));
    let (stream, mut other) = duplex(64 << 10);
    let stopping = CancellationToken::new();
    let stop = stopping.clone();
    let sending =
        tokio::spawn(async move { queue.send_all("own", stream, &stop, |_, _| {}).await });
    let mut heard = vec![0; 4];
    other.read_exact(&mut heard).await.unwrap();
    stopping.cancel();
    other.read_to_end(&mut heard).await.unwrap();
    sending.await.unwrap();
    heard
}

#[tokio::test]
async fn nothing_follows_half_of_a_frame() {
    let heard = heard([message(7, 1 << 20), message(9, 1_000)]).await;
    let rest = &heard[16..];
    assert!(rest.len() < 1 << 20, "it was stopped in the middle: {}", rest.len());
    assert!(rest.iter().all(|&byte| byte == 7), "the other server would take it for the rest");
}
