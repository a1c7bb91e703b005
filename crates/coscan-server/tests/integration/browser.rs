//! The page in a browser, where headless Chromium replays samples of a manager. The test needs Chromium or Chrome
//! (`apt-get install chromium`), so it runs only on request:
//! `cargo test --workspace --test integration -- --ignored browser`. `COSCAN_SCREENSHOTS=DIRECTORY` keeps screenshots,
//! `COSCAN_RECORDING=FILE` is the recording that they show.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use crate::dashboard::table::table;
use axum::routing::get;
use coscan_runtime::{BufferManager, Options, ScanLabel, ScanRequest};
use coscan_server::http::{
    DashboardState, Feed, Sample, ServerRow, ServersRow, WorkerRow, WorkersRow, router,
};
use futures::StreamExt;
use tokio::net::TcpListener;
use tokio::process::Command;

/// A file to replay, with samples of a manager that runs 16 queries.
async fn recording(manager: &BufferManager) -> String {
    let table = table(manager).await;
    let feed = Feed::start(manager.clone());
    let mut watcher = feed.watch();
    let mut lines = Vec::new();
    let mut scans = Vec::new();
    for query in 0..16 {
        let label = ScanLabel { query: Some(format!("q{query}").into()), table: None };
        let columns = vec![query % 2];
        let request = ScanRequest { label, ..ScanRequest::of_columns(&table, columns) };
        let scan = manager.start_scan(&table, request).unwrap();
        let mut batches = scan.worker(0);
        batches.next().await.unwrap().unwrap();
        scans.push((scan, batches));
        let sample = Sample {
            servers: Some(servers(query as u64)),
            workers: Some(workers()),
            ..watcher.next().await.unwrap()
        };
        lines.push(serde_json::to_string(&sample).unwrap());
    }
    lines.join("\n")
}

/// A worker, which also divides its queries among two.
fn workers() -> WorkersRow {
    let worker = |address: &str, status: &str, reason: Option<&str>| WorkerRow {
        address: address.to_owned(),
        status: status.to_owned(),
        reason: reason.map(str::to_owned),
    };
    let rows = vec![
        worker("db1:5450", "healthy", None),
        worker("db2:5450", "unreachable", Some("no answer within 3 s")),
    ];
    WorkersRow { tasks: Some(3), rows }
}

/// Three servers that share. The bytes sent to this one grow, and it sends nothing.
fn servers(sent: u64) -> ServersRow {
    let server = |address: &str, status: &str, extents: u64, sent: u64| ServerRow {
        address: address.to_owned(),
        zone: Some("here".to_owned()),
        status: status.to_owned(),
        extents,
        bytes_owned: extents << 23,
        bytes_sent: 0,
        bytes_received: sent,
    };
    let rows = vec![
        server("db1:5440", "this server", 5, 0),
        server("db3:5440", "sharing", 3, sent << 20),
        server("db2:5440", "unreachable", 0, 0),
    ];
    ServersRow { count: rows.len(), bytes_shared: 8 << 23, rows }
}

/// Serves the page and the file at a port of its own.
async fn serve(recording: String, manager: BufferManager) -> SocketAddr {
    let empty = r#"{"version":1,"seconds":1,"policy":"relevance","memory":{"budget":1,"pool":0,"pool_limit":1,"decoded":0,
        "operators":0,"metadata":0,"peak":0},"totals":{"bytes_read":0,"bytes_saved":0,"slices_decoded":0,"slices_reused":0,
        "chunks":0,"loads":0,"decisions":0,"decision_us":0},"scan_count":0,"scans":[],"tables":[],"shared_bytes":[0,0,0,0,0]}"#;
    let empty = empty.replace('\n', " ");
    let shown =
        std::env::var_os("COSCAN_RECORDING").map(|file| std::fs::read_to_string(file).unwrap());
    let shown = shown.unwrap_or_else(|| recording.clone());
    let pages = router(DashboardState::new(manager))
        .route("/run.jsonl", get(async move || recording))
        .route("/shown.jsonl", get(async move || shown))
        .route("/empty.jsonl", get(async move || empty));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, pages).await });
    address
}

/// Runs Chromium on a page for some seconds of its own time. Returns its output.
async fn browse(url: &str, more: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--hide-scrollbars", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(url)
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_secs(120), output).await;
    let output = output.expect("the browser ends").unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The first browser that is installed.
fn browser() -> &'static str {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |name: &&str| std::env::split_paths(&paths).any(|path| path.join(name).is_file());
    names.into_iter().find(is_there).expect("install Chromium: apt-get install chromium")
}

async fn screenshot(directory: &Path, name: &str, url: &str, size: &str, more: &[&str]) {
    let file = format!("--screenshot={}", directory.join(name).display());
    let size = format!("--window-size={size}");
    browse(url, &[&[&*file, &*size], more].concat()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn a_browser_shows_what_the_manager_did() {
    let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
    let recording = recording(&manager).await;
    let address = serve(recording, manager).await;
    let run = format!("http://{address}/?replay=run.jsonl&at=1");
    let page = browse(&run, &["--dump-dom"]).await;
    assert!(page.contains("replay, policy relevance"), "{page}");
    assert!(
        page.contains(r#"class="query" title="q15"><span class="">q15<"#),
        "the last scan is listed: {page}"
    );
    let figure = |id: &str| page.split(&format!(r#"id="{id}">"#)).nth(1)?.split('<').next();
    assert_eq!(figure("f-scans"), Some("16"));
    assert!(figure("f-saved").is_some_and(|saved| saved.ends_with("kB")), "{page}");
    assert!(page.contains("Map of numbers: 2 columns by 8 chunks"), "in words, too: {page}");
    let panel = |page: &str| {
        let panel = page.split(r#"id="servers""#).nth(1).unwrap();
        panel.split("</section>").next().unwrap().to_owned()
    };
    let servers = panel(&page);
    assert!(!servers.contains(r#"hidden="">"#), "{servers}");
    assert!(servers.contains("files of 67.1 MB, shared with 1 of 2 other servers"), "{servers}");
    assert!(servers.contains(r#"<p id="flows-own" title="this server">db1:5440</p>"#), "{servers}");
    assert!(servers.contains("63 %: 5 extents, 41.9 MB"), "{servers}");
    let flow = r#"<li class="peer"><span class="" title="db3:5440">db3:5440</span>"#;
    assert_eq!(servers.matches(flow).count(), 1, "it sends, and gets nothing: {servers}");
    let flows = servers.split("<table").next().unwrap();
    assert!(!flows.contains("db2:5440"), "nothing flows between the two: {servers}");
    let rows: Vec<_> = servers.split("<tr").skip(2).collect();
    assert!(rows[1].contains("db2") && rows[1].contains("unreachable"), "by address: {servers}");
    let workers = page.split(r#"id="workers""#).nth(1).unwrap().split("</section>").next().unwrap();
    assert!(!workers.contains(r#"hidden="">"#), "{workers}");
    let note = "queries are divided among 1 of 2 workers; 3 tasks of other servers";
    assert!(workers.contains(note), "{workers}");
    assert!(workers.contains("no answer within 3 s"), "{workers}");
    let empty = format!("http://{address}/?replay=empty.jsonl&at=1");
    let page = browse(&empty, &["--dump-dom"]).await;
    assert!(page.contains(r#"<p class="empty" id="empty">No table"#), "{page}");
    assert!(panel(&page).contains(r#"hidden="">"#), "without a ring there is no panel: {page}");
    assert!(page.contains(r#"<p class="empty" id="no-scans">No scan runs."#), "{page}");
    if let Some(directory) = std::env::var_os("COSCAN_SCREENSHOTS") {
        let directory = Path::new(&directory);
        let end = format!("http://{address}/?replay=shown.jsonl&at=1");
        let (light, dark) = ([].as_slice(), ["--blink-settings=preferredColorScheme=0"].as_slice());
        for (theme, more) in [("", light), ("-dark", dark)] {
            for (name, url, size) in [
                ("dashboard", &end, "1440,2100"),
                ("dashboard-empty", &empty, "1440,1000"),
                ("dashboard-phone", &end, "500,1900"),
            ] {
                screenshot(directory, &format!("{name}{theme}.png"), url, size, more).await;
            }
        }
    }
}
