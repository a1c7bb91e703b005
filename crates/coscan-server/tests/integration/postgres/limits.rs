//! The resources that a client may make the server hold.

use crate::postgres::without_passwords;
use crate::support::wire::{Wire, code, framed};

/// A Sync message, which ends a series of messages.
fn sync() -> Vec<u8> {
    framed(Some(b'S'), b"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_sent_while_the_client_asks_for_more() {
    let running = without_passwords().await;
    let mut wire = Wire::ready(running.at).await;
    let columns: Vec<_> = (0..1000).map(|column| format!("1 AS c{column}")).collect();
    let parse = format!("\0SELECT {}\0\0\0", columns.join(", "));
    let describe = framed(Some(b'D'), b"S\0");
    // The answers take 200 times as many bytes as the requests, and there is no Sync.
    wire.send(&[framed(Some(b'P'), parse.as_bytes()), describe.repeat(200)].concat()).await;
    let first = wire.until(b'T').await;
    let kinds: Vec<_> = first.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, b"1tT");
    wire.send(&sync()).await;
    let rest = wire.until(b'Z').await;
    assert_eq!(rest.iter().filter(|(kind, _)| *kind == b'T').count(), 199);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_and_portals_of_a_connection_take_a_limited_number_of_bytes() {
    let running = without_passwords().await;
    let mut wire = Wire::ready(running.at).await;
    let value = "x".repeat(1_000_000);
    let length = i32::try_from(value.len()).unwrap().to_be_bytes();
    let bind = |portal: usize| {
        let names = format!("p{portal}\0s\0\0\0\0\x01");
        framed(Some(b'B'), &[names.as_bytes(), &length, value.as_bytes(), b"\0\0"].concat())
    };
    let statement =
        |name: &str, sql: &str| framed(Some(b'P'), format!("{name}\0{sql}\0\0\0").as_bytes());
    wire.send(&[statement("s", "SELECT $1::text"), sync()].concat()).await;
    wire.until(b'Z').await;
    for text in ["BEGIN", "ROLLBACK"] {
        wire.send(&framed(Some(b'Q'), format!("{text}\0").as_bytes())).await;
        wire.until(b'Z').await;
        let mut refused = None;
        for portal in 0..20 {
            wire.send(&[bind(portal), sync()].concat()).await;
            refused = refused.or(code(&wire.until(b'Z').await[0]));
        }
        // Outside of a transaction, a portal ends with Sync.
        assert_eq!(refused.as_deref(), (text == "BEGIN").then_some("54000"));
    }
    for long in [format!("SELECT '{value}'"), format!("FETCH 1 FROM \"{value}\"")] {
        let mut codes = Vec::new();
        for name in 0..20 {
            wire.send(&[statement(&format!("long {name}"), &long), sync()].concat()).await;
            codes.extend(code(&wire.until(b'Z').await[0]));
        }
        assert_eq!(codes, ["54000"; 4]);
        wire.send(&framed(Some(b'Q'), b"DEALLOCATE ALL\0")).await;
        wire.until(b'Z').await;
    }
    wire.send(&[statement("s", "SELECT $1::text"), bind(0), sync()].concat()).await;
    assert_eq!(wire.until(b'Z').await.len(), 3);
}
