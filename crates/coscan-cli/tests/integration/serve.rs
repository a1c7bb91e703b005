//! `coscan serve` and `coscan user`, run by their command lines.
#![cfg(feature = "server")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Output, Stdio};

use tempfile::TempDir;

#[cfg(unix)]
use crate::program::signal;
use crate::program::{coscan, failure, run, stderr, stdout};

fn run_with(arguments: &[&str], input: &str) -> Output {
    let mut command = coscan();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A directory with a table and a users file.
fn directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("t.parquet").display().to_string();
    let copy = format!("COPY (SELECT value AS n FROM generate_series(1, 1000)) TO '{path}'");
    assert!(run(&["sql", "-q", "-e", &copy]).status.success());
    let user = run_with(&["user", "ann", "--table", "t"], "secret\n");
    assert!(user.status.success());
    fs::write(directory.path().join("users.toml"), user.stdout).unwrap();
    directory
}

fn config(directory: &TempDir, more: &str) -> String {
    let path = directory.path().join("coscan.toml");
    let table = directory.path().join("t.parquet");
    let text = format!(
        "users_file = 'users.toml'\n{more}\n[tables]\nt = '{}'\n[listen]\npostgres = '127.0.0.1:0'\n",
        table.display()
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_user_entry_holds_no_password() {
    let entry = stdout(&run_with(&["user", "ann"], "secret\n"));
    assert!(entry.starts_with("[users.\"ann\"]\nverifier = \"SCRAM-SHA-256$4096:"), "{entry}");
    assert!(!entry.contains("secret"));
    assert!(!run_with(&["user", "ann"], "\n").status.success());
}

#[test]
fn check_says_all_that_is_wrong() {
    let directory = directory();
    let right = run(&["serve", "--check", "--config", &config(&directory, "")]);
    assert!(right.status.success(), "{:?}", stderr(&right));
    let path = config(&directory, "");
    let arguments = ["serve", "--check", "--config", &path, "--table", "gone=/nowhere/*.parquet"];
    let wrong = run(&[&arguments[..], &["--listen-postgres", "0.0.0.0:0"]].concat());
    let text = failure(&wrong);
    assert!(text.contains("table gone") && text.contains("certificate"), "{text}");
    let table = directory.path().join("t.parquet").display().to_string();
    let replicas =
        |replica: &str| run(&["serve", "--check", "--config", &path, "--replica", replica]);
    assert!(replicas(&format!("t={table}")).status.success());
    let gone = stderr(&replicas("t=/nowhere/x.parquet"));
    assert!(gone.contains("table t") && gone.contains("/nowhere/x.parquet"), "{gone}");
    let unnamed = stderr(&replicas(&format!("u={table}")));
    assert!(unnamed.contains("tables.\"u\" has no name or no location"), "{unnamed}");
    let unknown = run(&["serve", "--check", "--config", &config(&directory, "x = 1")]);
    assert!(stderr(&unknown).contains("unknown field `x`"), "{:?}", stderr(&unknown));
    let insecure = ["serve", "--insecure", "--listen-postgres", "0.0.0.0:0", "--check"];
    assert!(stderr(&run(&insecure)).contains("insecure"));
}

#[cfg(unix)]
#[test]
fn a_server_starts_reloads_and_stops_on_signals() {
    let directory = directory();
    let path = config(&directory, "");
    let mut server = coscan()
        .args(["serve", "--config", &path])
        .args(cfg!(feature = "flight-sql").then_some("--listen-flight=127.0.0.1:0"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("clients connect with")).unwrap();
    if cfg!(feature = "flight-sql") {
        lines
            .find(|line| line.contains("Flight SQL clients connect to: grpc://127.0.0.1:"))
            .unwrap();
    }
    let send = |name: &str| signal(&server, name);
    send("HUP");
    lines.find(|line| line.contains("configuration reloaded")).unwrap();
    fs::write(directory.path().join("users.toml"), "[users.ann]\nverifier = 'x'\n").unwrap();
    send("HUP");
    lines.find(|line| line.contains("cannot reload") && line.contains("`ann`")).unwrap();
    send("TERM");
    lines.find(|line| line.contains("stopping")).unwrap();
    assert!(server.wait().unwrap().success());
}

/// A message of the PostgreSQL protocol.
fn message(kind: &str, body: &str) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [kind.as_bytes(), &length, body.as_bytes()].concat()
}

#[cfg(unix)]
#[test]
fn the_dashboard_is_served_and_lines_of_the_log_are_json_with_one_for_each_query() {
    let directory = directory();
    let table = format!("t={}", directory.path().join("t.parquet").display());
    let mut server = coscan()
        .args(["serve", "--insecure", "--table", &table, "--log-format", "json"])
        .args(["--listen-postgres", "127.0.0.1:0", "--listen-http", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut lines =
        lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).expect("JSON"));
    let mut find =
        |text: &str| lines.find(|line| line["message"].as_str().unwrap().contains(text)).unwrap();
    let port = |line: &serde_json::Value, before: &str| -> u16 {
        let text = line["message"].as_str().unwrap().split(before).nth(1).unwrap();
        text.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    let postgres = port(&find("clients connect with"), "-p ");
    let http = port(&find("browsers see"), "127.0.0.1:");

    let mut client = TcpStream::connect(("127.0.0.1", http)).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    client.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("dashboard.js"), "{page}");

    let mut client = TcpStream::connect(("127.0.0.1", postgres)).unwrap();
    client.write_all(&message("", "\0\u{3}\0\0user\0ann\0\0")).unwrap();
    client.write_all(&message("Q", "SELECT n FROM t WHERE n < 4\0")).unwrap();
    let line = find("query ended");
    assert_eq!((&line["level"], &line["user"]), (&"INFO".into(), &"ann".into()));
    assert_eq!((&line["state"], &line["rows"]), (&"done".into(), &3.into()));
    assert!(line["query_id"].is_u64() && line["seconds"].is_f64() && line["time"].is_string());
    assert!(!line.to_string().contains("SELECT"), "{line}");

    signal(&server, "TERM");
    find("stopping");
    assert!(server.wait().unwrap().success());
}
