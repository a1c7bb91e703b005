//! Requests to cancel, at any moment.

use crate::postgres::without_passwords;
use crate::support::wire::{Message, Wire, code, framed};

/// A query that returns no row for hours.
pub(crate) const LONG: &str =
    "SELECT count(*) FROM numbers a, numbers b WHERE a.id * b.id % 7 = 3 AND a.word < b.word";

/// A cancel request. The last message of a login has the number and the secret of the connection.
fn request(greeting: &[Message]) -> Vec<u8> {
    let (_, key) = greeting.iter().find(|(kind, _)| *kind == b'K').unwrap();
    framed(None, &[&80_877_102_i32.to_be_bytes(), &key[..]].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_concerns_all_that_was_sent_since_the_server_was_ready() {
    let running = without_passwords().await;
    let mut wire = Wire::connect(running.at).await;
    wire.login("ann").await;
    let request = request(&wire.until(b'Z').await);
    let cancel = async || {
        let mut other = Wire::connect(running.at).await;
        other.send(&request).await;
        assert_eq!(other.next().await, None, "it is closed once it was heard");
    };
    let parse = |sql: &str| framed(Some(b'P'), format!("\0{sql}\0\0\0").as_bytes());
    let run = [
        framed(Some(b'B'), b"\0\0\0\0\0\0\0\0"),
        framed(Some(b'E'), b"\0\0\0\0\0"),
        framed(Some(b'S'), b""),
    ]
    .concat();
    // The statement is planned, but does not run yet.
    wire.send(&[parse(LONG), framed(Some(b'H'), b"")].concat()).await;
    wire.until(b'1').await;
    cancel().await;
    wire.send(&run).await;
    let answers = wire.until(b'Z').await;
    assert!(answers.iter().any(|answer| code(answer).as_deref() == Some("57014")), "{answers:?}");
    // Nothing was sent since the request.
    cancel().await;
    wire.send(&[parse("SELECT 7"), run].concat()).await;
    let answers = wire.until(b'Z').await;
    let kinds: Vec<_> = answers.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, b"12DCZ");
}
