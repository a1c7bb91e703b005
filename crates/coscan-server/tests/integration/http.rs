//! The dashboard of a server: access control, and the end of connections.

use std::time::Duration;

use crate::support::http::{ask, basic, get};
use crate::support::server::{
    certificate, start, start_as, start_with, trusting, without_passwords,
};
use crate::support::{HANG, PASSWORD, in_time};
use coscan_core::SplitMix64;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn administrators_see_the_window_users_the_numbers_strangers_nothing() {
    let running = start().await;
    let (root, ann) = (basic("root", PASSWORD), basic("ann", PASSWORD));
    let wrong = basic("root", "wrong");
    for (path, login, expected) in [
        ("/", Some(&root), 200),
        ("/dashboard.js", Some(&root), 200),
        ("/metrics", Some(&root), 200),
        ("/metrics", Some(&ann), 200),
        ("/", Some(&ann), 403),
        ("/events", Some(&ann), 403),
        ("/", Some(&wrong), 401),
        ("/", None, 401),
        ("/events", None, 401),
        ("/dashboard.js", None, 401),
        ("/metrics", None, 401),
        ("/healthz", None, 200),
        ("/readyz", None, 200),
        ("/nothing", Some(&root), 404),
    ] {
        let headers: Vec<_> = login.into_iter().map(|(name, value)| (*name, &**value)).collect();
        let answer = get(running.http, path, &headers).await;
        assert_eq!(answer.status, expected, "{path} {login:?}: {answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer:?}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        let asks = answer.header("www-authenticate").is_some();
        assert_eq!(asks, expected == 401, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_strangers_end_after_an_answer_and_those_of_users_do_not() {
    let running = start().await;
    let ann = basic("ann", PASSWORD);
    for (path, login, ends) in [
        ("/", None, true),
        ("/nothing", None, true),
        ("/metrics", None, true),
        ("/healthz", None, true),
        ("/readyz", None, true),
        ("/metrics", Some(&ann), false),
    ] {
        let login = login.map_or(String::new(), |(name, value)| format!("{name}: {value}\r\n"));
        let mut tcp = TcpStream::connect(running.http).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{login}\r\n", running.http);
        tcp.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(in_time(tcp.read_u8()).await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        assert_eq!(head.contains("connection: close"), ends, "{path}: {head}");
        if ends {
            in_time(tcp.read_to_end(&mut Vec::new())).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cookie_stands_for_a_login_of_its_user() {
    let running = start().await;
    let root = basic("root", PASSWORD);
    let answer = get(running.http, "/", &[(root.0, &root.1)]).await;
    let cookie = answer.cookie().unwrap();
    let attributes = answer.header("set-cookie").unwrap();
    assert!(attributes.contains("HttpOnly") && attributes.contains("SameSite=Strict"));
    let again = get(running.http, "/dashboard.js", &[("cookie", cookie)]).await;
    assert_eq!((again.status, again.header("set-cookie")), (200, None));
    let ann = basic("ann", PASSWORD);
    let other = get(running.http, "/", &[("cookie", cookie), (ann.0, &ann.1)]).await;
    assert_eq!(other.status, 403, "a login as another counts");
    // Root is not an administrator any more.
    let users = crate::support::Tables::users().replace("admin = true", "admin = false");
    std::fs::write(running.tables.directory.path().join("users.toml"), &users).unwrap();
    running.server.sql_service().users().reload().unwrap();
    let demoted = get(running.http, "/", &[("cookie", cookie)]).await;
    // The file has new salts, so that the cookie does not match it.
    assert_eq!(demoted.status, 401, "{demoted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_are_answered_with_a_time_to_wait() {
    let running = start().await;
    let root = basic("root", "wrong");
    let mut answers = Vec::new();
    // Pauses grow until the next guess is too early, however slow this machine is.
    while answers.len() < 100 && answers.last() != Some(&429) {
        let answer = get(running.http, "/", &[(root.0, &root.1)]).await;
        assert_eq!(answer.header("retry-after").is_some(), answer.status == 429, "{answer:?}");
        answers.push(answer.status);
    }
    assert!((6..100).contains(&answers.len()), "{answers:?}");
    assert_eq!(answers[0], 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_passwords_only_names_of_this_machine_are_answered() {
    let running = start_as(|config, _| without_passwords(config)).await;
    assert_eq!(get(running.http, "/", &[]).await.status, 200);
    assert_eq!(get(running.http, "/", &[("host", "localhost:1")]).await.status, 200);
    for path in ["/", "/events", "/metrics"] {
        let answer = get(running.http, path, &[("host", "evil.example")]).await;
        assert_eq!(answer.status, 421, "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_reads_numbers_without_a_login_if_it_may() {
    let running = start_as(|config, _| config.http.local_metrics = true).await;
    assert_eq!(get(running.http, "/metrics", &[]).await.status, 200);
    let rebound = get(running.http, "/metrics", &[("host", "evil.example")]).await;
    assert_eq!(rebound.status, 401);
    assert_eq!(get(running.http, "/", &[]).await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_certificate_nothing_is_served_in_clear() {
    let running = start_with(true).await;
    let mut clear = TcpStream::connect(running.http).await.unwrap();
    clear.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let read = clear.read_to_end(&mut answer);
    in_time(read).await.ok();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");

    let pem = std::fs::read(running.tables.directory.path().join("c.pem")).unwrap();
    let tcp = TcpStream::connect(running.http).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = trusting(&pem, &[]).unwrap().connect(name.clone(), tcp).await.unwrap();
    let root = basic("root", PASSWORD);
    let answer = ask(tls, "/", &[("host", "localhost"), (root.0, &root.1)]).await;
    assert_eq!(answer.status, 200);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-coscan=") && cookie.ends_with("; Secure"), "{cookie}");

    // Another certificate for the same name.
    let other = tempfile::tempdir().unwrap();
    let other = std::fs::read(certificate(other.path()).certificate).unwrap();
    let tcp = TcpStream::connect(running.http).await.unwrap();
    let error = trusting(&other, &[]).unwrap().connect(name, tcp).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_is_answered_or_refused() {
    let running = start().await;
    let mut random = SplitMix64(1);
    let request = b"GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Basic YW5uOng=\r\ncookie: coscan=x\r\n\r\n";
    for round in 0..300 {
        let mut bytes = request.to_vec();
        for _ in 0..=round % 4 {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        let mut tcp = TcpStream::connect(running.http).await.unwrap();
        // The server may close the connection first.
        tcp.write_all(&bytes).await.ok();
        tcp.shutdown().await.ok();
        in_time(tcp.read_to_end(&mut Vec::new())).await.ok();
    }
    assert_eq!(get(running.http, "/healthz", &[]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_never_asks_is_sent_away() {
    let running = start_as(|config, _| config.limits.login_max = Duration::from_millis(50)).await;
    let mut client = TcpStream::connect(running.http).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut answer = Vec::new();
    in_time(client.read_to_end(&mut answer)).await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_queries_end_the_server_is_not_ready_and_then_nobody_watches() {
    let running = start().await;
    let (http, root) = (running.http, basic("root", PASSWORD));
    let client = running.login("ann").await;
    let none: [i64; 0] = [];
    // This is more than fits between the server and a client that does not read.
    let sql = "SELECT id, repeat(word, 500) FROM numbers";
    let mut rows = Box::pin(client.query_raw(sql, none).await.unwrap());
    futures::StreamExt::next(&mut rows).await.unwrap().unwrap();
    let mut watching = TcpStream::connect(http).await.unwrap();
    let request = format!("GET /events HTTP/1.1\r\nhost: x\r\n{}: {}\r\n\r\n", root.0, root.1);
    watching.write_all(request.as_bytes()).await.unwrap();
    let mut seen = String::new();
    let look = async {
        while !(seen.contains(r#""user":"ann","sql":"SELECT id, repeat("#)) {
            let mut more = [0; 4096];
            let count = watching.read(&mut more).await.unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&more[..count]));
        }
    };
    in_time(look).await;
    assert!(seen.starts_with("HTTP/1.1 200"));
    for name in ["numbers", "secrets"] {
        assert!(seen.contains(&format!(r#""name":"{name}","columns""#)), "{seen}");
    }

    let (hurry, hurried) = tokio::sync::oneshot::channel::<()>();
    let stop = running.server.stop(HANG, async { drop(hurried.await) });
    let stopping = tokio::spawn(stop);
    let unready = async { while get(http, "/readyz", &[]).await.status != 503 {} };
    in_time(unready).await;
    assert_eq!(get(http, "/healthz", &[]).await.status, 200);
    hurry.send(()).unwrap();
    let mut rest = Vec::new();
    in_time(watching.read_to_end(&mut rest)).await.unwrap();
    drop(rows);
    in_time(stopping).await.unwrap();
    assert!(TcpStream::connect(http).await.is_err());
}
