//! A store that asks to slow down gets no more requests than one that serves, and all of them as soon as it serves
//! again. Requests are counted at the server, in virtual time.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{CHUNK_ROWS, LARGE, are_rows, file_bytes, ids, in_time, manager_with};
use async_trait::async_trait;
use bytes::Bytes;
use coscan_runtime::Options;
use coscan_runtime::storage::stores::{Jitter, Timeouts};
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};
use parquet::basic::Compression;
use tokio::time::Instant;

const ROWS: u64 = 100 * CHUNK_ROWS;
const LATENCY: Duration = Duration::from_millis(20);
const OVERLOAD: Duration = Duration::from_secs(30);

/// A bucket with one file.
#[derive(Debug)]
struct Server {
    file: Bytes,
    /// The times of all requests, and whether they were served.
    requests: Mutex<Vec<(Instant, bool)>>,
    /// The number of requests after which it asks to slow down, and the time since which it has.
    overload_after: Mutex<Option<(usize, Option<Instant>)>>,
}

impl Server {
    /// Whether the request that comes now is served.
    fn serves(&self) -> bool {
        let mut requests = self.requests.lock().unwrap();
        let now = Instant::now();
        let serves = match &mut *self.overload_after.lock().unwrap() {
            Some((count, since)) if requests.len() >= *count => {
                let since = *since.get_or_insert(now);
                now - since >= OVERLOAD
            }
            _ => true,
        };
        requests.push((now, serves));
        serves
    }
}

#[derive(Debug, Clone)]
struct Connection(Arc<Server>);

impl HttpConnector for Connection {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connection {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Server { file, .. } = &*self.0;
        let serves = self.0.serves();
        tokio::time::sleep(LATENCY).await;
        if !serves {
            let body = "<Error><Code>SlowDown</Code></Error>".to_owned();
            let mut response = HttpResponse::new(body.into());
            *response.status_mut() = 503.try_into().unwrap();
            return Ok(response);
        }
        let range = request.headers().get("range").map(|range| {
            let (start, end) =
                range.to_str().unwrap().strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            start.parse().unwrap()..end.parse::<usize>().unwrap() + 1
        });
        let mut headers = vec![
            ("etag", "\"1\"".to_owned()),
            ("last-modified", "Mon, 05 Jan 2026 10:00:00 GMT".to_owned()),
        ];
        let is_head = request.method().as_str() == "HEAD";
        let body = match &range {
            Some(range) => {
                let all = file.len();
                let content = format!("bytes {}-{}/{all}", range.start, range.end - 1);
                headers.push(("content-range", content));
                file.slice(range.clone())
            }
            None => file.clone(),
        };
        headers.push(("content-length", body.len().to_string()));
        let body = if is_head { Bytes::new() } else { body };
        let mut response = HttpResponse::new(body.into());
        *response.status_mut() = if range.is_some() { 206 } else { 200 }.try_into().unwrap();
        for (name, value) in headers {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        Ok(response)
    }
}

/// Scans the file with two scans. Returns the requests, and the time when the last scan ended.
async fn scan(overload_after: Option<usize>, seed: u64) -> (Vec<(Instant, bool)>, Instant) {
    let server = Arc::new(Server {
        file: file_bytes(ROWS, Compression::UNCOMPRESSED).into(),
        requests: Mutex::default(),
        overload_after: Mutex::default(),
    });
    let timeouts = Timeouts::default();
    let connection = Connection(Arc::clone(&server));
    let store = AmazonS3Builder::new()
        .with_bucket_name("bucket")
        .with_region("here")
        .with_endpoint("http://server")
        .with_allow_http(true)
        .with_skip_signature(true)
        .with_retry(timeouts.retry_config())
        .with_http_connector(timeouts.around(connection, Jitter::new(Some(seed))))
        .build()
        .unwrap();
    let meta = store.head(&Path::from("table.parquet")).await.unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    let file = TableFile { store, store_url: "s3://bucket/".parse().unwrap(), meta };
    let options = FileOptions { chunk_rows: CHUNK_ROWS, ..FileOptions::default() };
    let table = Arc::new(ParquetTable::open(vec![file], options).await.unwrap());
    let options = Options { jitter_seed: Some(seed), ..Options::with_pool_bytes(LARGE, 4 << 20) };
    let manager = manager_with(options);
    let table = manager.register(table);
    server.requests.lock().unwrap().clear();
    *server.overload_after.lock().unwrap() = overload_after.map(|count| (count, None));
    let scans = [&[0, 1, 2][..], &[0]]
        .map(|columns| ids(manager.scan(&table, columns, &[0..ROWS]).unwrap()));
    for rows in in_time(futures::future::join_all(scans)).await {
        assert!(are_rows(rows, 0..ROWS));
    }
    let requests = server.requests.lock().unwrap().clone();
    (requests, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn an_overload_of_half_a_minute_costs_few_requests_and_little_time() {
    let started = Instant::now();
    let (healthy, ended) = scan(None, 0).await;
    let healthy_time = ended - started;
    assert!(healthy.len() >= 100, "{}", healthy.len());
    for (overload_after, seed) in [(0, 1), (10, 2), (50, 3)] {
        let (requests, ended) = scan(Some(overload_after), seed).await;
        assert!(requests.len() <= 2 * healthy.len(), "{} of {}", requests.len(), healthy.len());
        let refused = requests.iter().filter(|(_, served)| !served);
        let first = refused.map(|(time, _)| *time).min().unwrap();
        let mut later = requests.iter().filter(|(time, _)| *time >= first + OVERLOAD);
        let pause = later.next().unwrap().0 - (first + OVERLOAD);
        assert!(pause <= Duration::from_secs(2), "{pause:?} after the overload");
        let rest = ended - (first + OVERLOAD + pause);
        assert!(rest <= healthy_time + Duration::from_secs(2), "{rest:?}, {healthy_time:?}");
        // Time for the page of each request to be asked for once a second, and no more.
        let in_second = |second: u32| {
            let start = first + Duration::from_secs(second.into());
            let end = start + Duration::from_secs(1);
            requests.iter().filter(|(time, _)| (start..end).contains(time)).count()
        };
        for second in 1..30 {
            assert!(in_second(second) <= 3, "{} in second {second}", in_second(second));
        }
    }
}
