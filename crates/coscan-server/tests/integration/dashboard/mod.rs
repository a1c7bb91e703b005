//! The dashboard of a manager at work: its page, events, metrics, and shutdown.

pub(crate) mod table;

use std::time::Duration;

use self::table::{CHUNKS, table};
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use coscan_runtime::{BufferManager, Options, ScanLabel, ScanRequest, SharedTable};
use coscan_server::http::{CELL_NUMBERS, DashboardState, Feed, Sample, VERSION, router};
use futures::StreamExt;
use tower::ServiceExt;

fn manager() -> BufferManager {
    BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap()
}

fn request(table: &SharedTable) -> ScanRequest {
    let label = ScanLabel { query: Some("q1".into()), table: None };
    ScanRequest { label, ..ScanRequest::of_columns(table, vec![0]) }
}

async fn get(state: &DashboardState, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = router(state.clone()).oneshot(request).await.unwrap();
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_watcher_sees_a_scan_begin_read_and_end() {
    let manager = manager();
    let table = table(&manager).await;
    let feed = Feed::start(manager.clone());
    let mut watcher = feed.watch();
    let first = watcher.next().await.unwrap();
    assert_eq!((first.version, first.scan_count), (VERSION, 0));
    let tables = first.tables.unwrap();
    assert_eq!((&*tables[0].name, tables[0].chunks), ("table", CHUNKS));
    assert_eq!(tables[0].columns, ["id", "same"]);
    let map = &first.maps[0];
    assert!(map.whole && map.cells.iter().all(|&number| number == 0), "all cold: {map:?}");
    assert_eq!(map.cells.len(), 2 * CHUNKS * CELL_NUMBERS);

    let scan = manager.start_scan(&table, request(&table)).unwrap();
    let mut stream = scan.worker(0);
    stream.next().await.unwrap().unwrap();
    let mut sample = watcher.next().await.unwrap();
    let mut loads = std::mem::take(&mut sample.loads);
    while sample.scans.first().is_none_or(|row| row.delivered == 0) {
        sample = watcher.next().await.unwrap();
        loads.append(&mut sample.loads);
    }
    let row = &sample.scans[0];
    assert_eq!((row.query.as_deref(), &row.columns[..]), (Some("q1"), &["id".to_owned()][..]));
    assert!(row.delivered >= 1 && row.chunks == CHUNKS as u64 && !row.why.is_empty());
    assert!(sample.maps.iter().all(|map| !map.whole), "only what has changed");
    assert!(sample.shared_bytes[0] > 0);
    while stream.next().await.transpose().unwrap().is_some() {}
    drop((stream, scan));

    let mut last = watcher.next().await.unwrap();
    while last.scan_count > 0 {
        loads.append(&mut last.loads);
        last = watcher.next().await.unwrap();
    }
    loads.append(&mut last.loads);
    let mut chunks: Vec<_> = loads.iter().map(|load| load.chunk as usize).collect();
    chunks.sort_unstable();
    assert_eq!(chunks, (0..CHUNKS).collect::<Vec<_>>(), "every read is told once");
    assert_eq!(last.totals.chunks, CHUNKS as u64);
    let late = feed.watch().next().await.unwrap();
    let stored = late.maps[0].cells[1];
    assert_eq!((late.maps[0].whole, stored), (true, 255), "one who comes late is told all");
}

#[tokio::test]
async fn events_are_samples_and_end_when_the_server_stops() {
    let manager = manager();
    let _table = table(&manager).await;
    let state = DashboardState::new(manager);
    let request = Request::get("/events").body(Body::empty()).unwrap();
    let answer = router(state.clone()).oneshot(request).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut body = answer.into_body().into_data_stream();
    let event = body.next().await.unwrap().unwrap();
    let text = std::str::from_utf8(&event).unwrap();
    let sample: Sample = serde_json::from_str(text.strip_prefix("data: ").unwrap()).unwrap();
    assert!(sample.tables.is_some());
    state.stop();
    let end = async { while body.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), end).await.expect("it ends");
    assert_eq!(get(&state, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(get(&state, "/healthz").await.0, StatusCode::OK);
    let (status, late) = get(&state, "/events").await;
    assert_eq!((status, &*late), (StatusCode::OK, ""), "nobody hangs on a feed that has ended");
}

#[tokio::test]
async fn the_page_has_all_files_that_it_names() {
    let state = DashboardState::new(manager());
    let (status, page) = get(&state, "/").await;
    assert_eq!(status, StatusCode::OK);
    let mut seen = vec![page];
    let mut names = vec!["dashboard.css".to_owned(), "dashboard.js".to_owned()];
    assert!(names.iter().all(|name| seen[0].contains(&format!("\"{name}\""))));
    while let Some(name) = names.pop() {
        let (status, text) = get(&state, &format!("/{name}")).await;
        assert_eq!(status, StatusCode::OK, "{name}");
        for line in text.lines().filter(|line| line.starts_with("import ")) {
            names.push(line.split("\"./").nth(1).unwrap().split('"').next().unwrap().to_owned());
        }
        seen.push(text);
    }
    assert!(seen.len() > 8);
    let address = |text: &String| text.contains("https://") || text.contains("//cdn");
    assert!(!seen.iter().any(address), "the page loads nothing from elsewhere");
    assert_eq!(get(&state, "/secret").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn numbers_for_monitoring_are_those_of_the_manager() {
    let manager = manager();
    let table = table(&manager).await;
    let scan = manager.start_scan(&table, request(&table)).unwrap();
    let mut stream = scan.worker(0);
    while stream.next().await.transpose().unwrap().is_some() {}
    let report = manager.report();
    let (status, text) = get(&DashboardState::new(manager), "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    for line in [
        "coscan_scans 1".to_owned(),
        format!("coscan_chunks_delivered_total {CHUNKS}"),
        format!("coscan_read_bytes_total {}", report.bytes_read),
        format!("coscan_memory_budget_bytes {}", 64 << 20),
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    assert!(text.ends_with("# EOF\n"));
}
