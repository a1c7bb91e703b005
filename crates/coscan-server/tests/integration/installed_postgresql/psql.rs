//! psql runs queries, and lists the objects of the server.

use std::process::Stdio;

use crate::support::PASSWORD;
use crate::support::server::{Running, start};

/// Runs psql. Returns whether it succeeds, and its output.
async fn psql(running: &Running, user: &str, password: &str, commands: &[&str]) -> (bool, String) {
    let mut psql = std::process::Command::new("psql");
    let url = format!("postgresql://{user}@127.0.0.1:{}/coscan", running.at.port());
    psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", &url]);
    psql.env("PGPASSWORD", password).stdin(Stdio::null());
    for command in commands {
        psql.args(["--command", command]);
    }
    let output = tokio::task::spawn_blocking(move || psql.output()).await.unwrap();
    let output = output.expect("install psql: apt-get install postgresql-client");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs psql"]
async fn psql_runs_queries_and_lists_granted_tables_only() {
    let running = start().await;
    let commands = [
        "SELECT count(*) FROM numbers",
        "\\d",
        "\\dt",
        "\\d numbers",
        "\\dt+",
        "\\dn",
        "\\l",
        "\\d+ numbers",
        "\\du",
        "\\df",
        "SELECT current_user",
    ];
    let (succeeded, text) = psql(&running, "ann", PASSWORD, &commands).await;
    assert!(succeeded, "{text}");
    assert!(text.starts_with("30000\n"), "{text}");
    assert!(text.contains("public|numbers|table") && !text.contains("secrets"), "{text}");
    assert!(text.contains("word|") && text.ends_with("ann\n"), "{text}");
    assert!(text.contains("\nann|") && !text.contains("bob"), "{text}");
    // Lists of objects that this server does not have are empty, and are not errors.
    let commands = [
        "\\dp",
        "\\z",
        "\\dn+",
        "\\db+",
        "\\drds",
        "\\dT+",
        "\\do",
        "\\dD",
        "\\l+",
        "\\dt+",
        "\\dv",
        "\\dm",
        "\\ds",
        "\\di",
        "\\dE",
        "\\dx",
        "\\da",
        "\\dc",
        "\\dC",
        "\\dd",
        "\\ddp",
        "\\dF",
        "\\du+",
        "\\dl",
        "\\dL",
        "\\dO",
        "\\dP",
        "\\dRp",
        "\\dRs",
        "\\dy",
        "\\des",
        "\\det",
        "\\deu",
        "\\dew",
        "\\df+",
        "\\dX",
        "\\dAc",
        "\\dAf",
        "\\dAo",
        "\\dAp",
        "\\dconfig",
        "SELECT 'the end'",
    ];
    let (succeeded, text) = psql(&running, "ann", PASSWORD, &commands).await;
    assert!(succeeded && text.contains("the end\n") && !text.contains("ERROR"), "{text}");
    assert!(text.contains("public|numbers|table||"), "{text}");
    let cursor = [
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id",
        "FETCH 2 FROM c",
        "CLOSE c",
    ];
    let (succeeded, text) = psql(&running, "ann", PASSWORD, &[&cursor.join("; ")]).await;
    assert!(succeeded && text == "BEGIN\nDECLARE CURSOR\n0\n1\nCLOSE CURSOR\n", "{text}");
    let (succeeded, text) = psql(&running, "ann", "wrong", &["SELECT 1"]).await;
    assert!(!succeeded && text.contains("password authentication failed"), "{text}");
}
