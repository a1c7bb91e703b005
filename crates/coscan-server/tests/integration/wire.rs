//! The PostgreSQL protocol with a client that violates its rules.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::server::{Running, start, start_as, without_passwords};
use crate::support::wire::{Wire, code, framed};
use coscan_server::Stopped;
use coscan_server::config::Limits;
use coscan_server::queries::{QueryReport, QueryState};
use proptest::prelude::*;

async fn start_insecure(limits: Limits) -> Running {
    start_as(|config, _| {
        without_passwords(config);
        config.limits = limits;
    })
    .await
}

/// Checks that the server still answers.
async fn answers(at: SocketAddr) {
    let mut wire = Wire::ready(at).await;
    wire.send(&framed(Some(b'Q'), b"SELECT count(*) FROM numbers\0")).await;
    let messages = wire.until(b'Z').await;
    assert!(messages.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"30000")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_message_before_and_after_the_login_is_refused() {
    let running = start_insecure(Limits::default()).await;
    let mut wire = Wire::connect(running.at).await;
    wire.send(b"E\0\0\0\x04").await;
    assert_eq!(wire.next().await, None);
    let mut wire = Wire::ready(running.at).await;
    wire.send(b"E\0\0\0\x03").await;
    assert_eq!(code(&wire.next().await.unwrap()).unwrap(), "08P01");
    assert_eq!(wire.next().await, None);
    answers(running.at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_in_a_message_does_not_concern_the_next() {
    let running = start_insecure(Limits::default()).await;
    let mut wire = Wire::ready(running.at).await;
    let sync = framed(Some(b'S'), b"");
    let parse = framed(Some(b'P'), b"\0SELECT id FROM numbers\0\0\0");
    for wrong in [
        framed(Some(b'E'), b""),
        framed(Some(b'P'), b"\0SELECT '\xff'\0\0\0"),
        framed(Some(b'B'), b"\0\0\0\0\0\0\0\x01\0\x07"), // No format has this number.
        framed(Some(b'D'), b"X\0"),
    ] {
        wire.send(&[&parse[..], &wrong, &parse, &sync].concat()).await;
        let messages = wire.until(b'Z').await;
        let errors = messages.iter().filter_map(code).collect::<Vec<_>>();
        assert_eq!(errors, ["08P01"], "{wrong:?}");
    }
    wire.send(&framed(Some(b'Q'), b"SELECT '\xff'\0")).await;
    assert_eq!(code(&wire.until(b'Z').await[0]).unwrap(), "08P01");
    wire.send(&framed(Some(b'Q'), b"SELECT 1\0")).await;
    assert_eq!(wire.until(b'Z').await.len(), 4, "description, row, end, ready");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_is_deallocated_by_running_deallocate() {
    let running = start_insecure(Limits::default()).await;
    let mut wire = Wire::ready(running.at).await;
    let sync = framed(Some(b'S'), b"");
    let one = framed(Some(b'P'), b"one\0SELECT 1\0\0\0");
    let drop = framed(Some(b'P'), b"drop\0DEALLOCATE one\0\0\0");
    let bind =
        |name: &str| framed(Some(b'B'), &[b"\0", name.as_bytes(), b"\0\0\0\0\0\0\0"].concat());
    let execute = framed(Some(b'E'), b"\0\0\0\0\0");
    wire.send(&[&one[..], &drop, &bind("one"), &execute, &sync].concat()).await;
    let messages = wire.until(b'Z').await;
    assert!(messages.iter().all(|message| code(message).is_none()), "{messages:?}");
    wire.send(&[&bind("drop")[..], &execute, &bind("one"), &sync].concat()).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(messages.iter().filter_map(code).collect::<Vec<_>>(), ["26000"]);
    assert!(messages.iter().any(|(kind, body)| *kind == b'C' && body.starts_with(b"DEALLOCATE")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_without_columns_are_rows() {
    let running = start_insecure(Limits::default()).await;
    let mut wire = Wire::ready(running.at).await;
    for (sql, kind) in
        [(&b"SELECT FROM numbers\0"[..], b'D'), (b"COPY (SELECT FROM numbers) TO STDOUT\0", b'd')]
    {
        wire.send(&framed(Some(b'Q'), sql)).await;
        let messages = wire.until(b'Z').await;
        let rows = messages.iter().filter(|(is, _)| *is == kind).count();
        assert_eq!(rows, 30_000, "{:?}", messages.last());
    }
    let parse = framed(Some(b'P'), b"\0SELECT FROM numbers\0\0\0");
    let (bind, describe) = (framed(Some(b'B'), b"\0\0\0\0\0\0\0\0"), framed(Some(b'D'), b"P\0"));
    let execute = framed(Some(b'E'), b"\0\0\0\0\x01");
    let sync = framed(Some(b'S'), b"");
    wire.send(&[&parse[..], &bind, &describe, &execute, &sync].concat()).await;
    let kinds: Vec<_> = wire.until(b'Z').await.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, b"12TDsZ", "rows are described, if they have no columns");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_sent_along_with_a_wrong_password_never_runs() {
    let running = start().await;
    let mut wire = Wire::connect(running.at).await;
    wire.login("ann").await;
    let first = b"n,,n=,r=abcdefghijklmnop";
    let initial = [b"SCRAM-SHA-256\0", &(first.len() as i32).to_be_bytes()[..], first].concat();
    wire.send(&framed(Some(b'p'), &initial)).await;
    wire.until(b'R').await;
    let (_, server_first) = wire.next().await.unwrap();
    let server_first = String::from_utf8(server_first[4..].to_vec()).unwrap();
    let nonce = server_first.split(',').next().unwrap();
    let proof = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let last = format!("c=biws,{nonce},p={proof}");
    let query = framed(Some(b'Q'), b"SELECT 4711\0");
    let pipelined = [framed(Some(b'p'), last.as_bytes()), query.clone(), query].concat();
    wire.send(&pipelined).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(code(&messages[0]).unwrap(), "28P01");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(running.server.sql_service().queries().list().len(), 0);
    // A query instead of a password is not run either.
    let mut wire = Wire::connect(running.at).await;
    wire.login("ann").await;
    wire.send(&framed(Some(b'Q'), b"SELECT 4711\0")).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(code(messages.last().unwrap()).unwrap(), "08P01");
    assert_eq!(running.server.sql_service().queries().list().len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_that_exist_and_that_do_not_are_asked_alike() {
    let running = start().await;
    let mut salts = Vec::new();
    for user in ["ann", "nobody", "nobody"] {
        let mut wire = Wire::connect(running.at).await;
        wire.login(user).await;
        let first = b"n,,n=,r=abcdefghijklmnop";
        let initial = [b"SCRAM-SHA-256\0", &(first.len() as i32).to_be_bytes()[..], first].concat();
        wire.send(&framed(Some(b'p'), &initial)).await;
        wire.next().await.unwrap();
        let (kind, body) = wire.next().await.unwrap();
        let text = String::from_utf8(body[4..].to_vec()).unwrap();
        let parts: Vec<_> = text.split(',').map(str::to_owned).collect();
        assert_eq!((kind, parts.len(), parts[1].len(), &*parts[2]), (b'R', 3, 26, "i=4096"));
        salts.push(parts[1].clone());
    }
    assert_eq!(salts[1], salts[2], "the salt of a stranger does not change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_number_of_rows_and_formats_is_answered() {
    let running = start_insecure(Limits::default()).await;
    let mut wire = Wire::ready(running.at).await;
    let parse = framed(Some(b'P'), b"\0SELECT id, word, id + 1 FROM numbers\0\0\0");
    let bind = framed(Some(b'B'), b"\0\0\0\0\0\0\0\0");
    let sync = framed(Some(b'S'), b"");
    for (rows_max, sent) in [(-1, 30_000), (i32::MAX, 30_000), (0, 30_000), (10, 10), (1, 1)] {
        let execute = framed(Some(b'E'), &[&b"\0"[..], &i32::to_be_bytes(rows_max)].concat());
        wire.send(&[&parse[..], &bind, &execute, &sync].concat()).await;
        let messages = wire.until(b'Z').await;
        let rows = messages.iter().filter(|(kind, _)| *kind == b'D').count();
        assert_eq!(rows, sent, "{rows_max}");
        let last = if sent < 30_000 { b's' } else { b'C' };
        assert_eq!(messages[messages.len() - 2].0, last, "{rows_max}");
    }
    let two_formats = framed(Some(b'B'), b"\0\0\0\0\0\0\0\x02\0\0\0\x01");
    wire.send(&[&parse[..], &two_formats, &sync].concat()).await;
    let messages = wire.until(b'Z').await;
    assert_eq!(code(&messages[1]).unwrap(), "08P01");
    answers(running.at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_sent_in_clear_after_asking_for_tls_are_not_taken_for_encrypted_ones() {
    let running = start_insecure(Limits::default()).await;
    let mut wire = Wire::connect(running.at).await;
    let ssl = framed(None, &80_877_103_i32.to_be_bytes());
    wire.send(&[&ssl[..], &ssl[..]].concat()).await;
    let mut answer = [0; 1];
    tokio::io::AsyncReadExt::read_exact(&mut wire.0, &mut answer).await.unwrap();
    assert_eq!(&answer, b"N");
    assert_eq!(wire.next().await, None, "TLS is asked for once");
    answers(running.at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_ends_when_its_client_goes_away() {
    let running = start_insecure(Limits::default()).await;
    let queries = running.server.sql_service().queries();
    for sql in [
        // The query returns rows at once, which nobody reads.
        &b"SELECT a.id FROM numbers a, numbers b, numbers c\0"[..],
        // The query returns no rows for hours.
        b"SELECT count(*) FROM numbers a, numbers b WHERE a.id * b.id % 7 = 3 AND a.word < b.word\0",
    ] {
        let mut wire = Wire::ready(running.at).await;
        wire.send(&framed(Some(b'Q'), sql)).await;
        while queries.counts().0 == 0 {
            tokio::task::yield_now().await;
        }
        drop(wire);
        tokio::time::timeout(Duration::from_secs(60), queries.drained()).await.unwrap();
    }
    answers(running.at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_is_dropped_after_a_while() {
    let limits = Limits { result_stall_max: Duration::from_millis(200), ..Limits::default() };
    let running = start_insecure(limits).await;
    let queries = running.server.sql_service().queries();
    let mut wire = Wire::ready(running.at).await;
    wire.send(&framed(Some(b'Q'), b"SELECT a.* FROM numbers a, numbers b, numbers c\0")).await;
    while queries.counts().0 == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(Duration::from_secs(60), queries.drained()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_limit_are_told_so() {
    let running = start_insecure(Limits { connections_max: 2, ..Limits::default() }).await;
    let _first = Wire::ready(running.at).await;
    let second = Wire::ready(running.at).await;
    let mut third = Wire::connect(running.at).await;
    third.login("ann").await;
    assert_eq!(code(&third.next().await.unwrap()).unwrap(), "53300");
    drop(second);
    // Its place is free once the server has noticed.
    loop {
        let mut wire = Wire::connect(running.at).await;
        wire.login("ann").await;
        match wire.next().await {
            Some((b'R', _)) => break,
            _ => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_beyond_the_limits_are_refused_with_another_code_than_connections() {
    for (queries_waiting, wait_max) in [(0, Duration::from_secs(3600)), (1, Duration::ZERO)] {
        let limits = Limits { queries_running: 1, queries_waiting, wait_max, ..Limits::default() };
        let running = start_insecure(limits).await;
        let mut first = Wire::ready(running.at).await;
        first.send(&framed(Some(b'Q'), b"SELECT a.* FROM numbers a, numbers b, numbers c\0")).await;
        first.until(b'D').await;
        let mut second = Wire::ready(running.at).await;
        second.send(&framed(Some(b'Q'), b"SELECT id FROM numbers\0")).await;
        let messages = second.until(b'E').await;
        assert_eq!(code(messages.last().unwrap()).unwrap(), "53400");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_lets_queries_end_and_cancels_those_that_do_not() {
    let running = start_insecure(Limits::default()).await;
    let mut idle = Wire::ready(running.at).await;
    assert_eq!(
        running.server.stop(Duration::from_secs(60), std::future::pending()).await,
        Stopped::Gracefully
    );
    assert_eq!(code(&idle.next().await.unwrap()).unwrap(), "57P01");
    let running = start_insecure(Limits::default()).await;
    let mut busy = Wire::ready(running.at).await;
    busy.send(&framed(Some(b'Q'), b"SELECT count(*) FROM numbers a, numbers b WHERE a.id * b.id % 7 = 3 AND a.word < b.word\0")).await;
    // The query must be running, since one that was not admitted yet would be refused instead of
    // cancelled.
    let is_running = |query: &QueryReport| query.state == QueryState::Running;
    while !running.server.sql_service().queries().list().iter().any(is_running) {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        running.server.stop(Duration::ZERO, std::future::pending()).await,
        Stopped::Cancelled
    );
    let messages = busy.until(b'Z').await;
    assert!(
        messages.iter().any(|message| code(message).as_deref() == Some("57014")),
        "{messages:?}"
    );
}

#[test]
fn any_bytes_are_answered_or_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let running = runtime.block_on(start_insecure(Limits::default()));
    let bytes = prop::collection::vec(any::<u8>(), 0..300);
    let kind = prop::sample::select(b"QPBDCEHSpdcfF".to_vec());
    let messages = prop::collection::vec((kind, prop::collection::vec(any::<u8>(), 0..40)), 0..6);
    let config =
        ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&(bytes, messages), |(bytes, messages)| {
            runtime.block_on(async {
                let mut stranger = Wire::connect(running.at).await;
                stranger.send(&bytes).await;
                drop(stranger);
                let mut user = Wire::ready(running.at).await;
                let mut sent: Vec<u8> = Vec::new();
                for (kind, body) in &messages {
                    sent.extend(framed(Some(*kind), body));
                }
                sent.extend(framed(Some(b'S'), b""));
                user.send(&sent).await;
                let answers = user.until(b'Z').await;
                assert!(!answers.is_empty(), "ready, or told why not");
            });
            Ok(())
        })
        .unwrap();
    runtime.block_on(answers(running.at));
}
