//! Reading from S3: the behaviour of a server, and the reaction of a store and a table.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::compute::{concat, concat_batches};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use bytes::Bytes;
use coscan_core::PageIndex;
use coscan_storage::stores::{StoreError, StoreOptions, Stores, Timeouts, list_files};
use coscan_storage::table::{
    FileOptions, ParquetTable, ReadError, TableError, TableFile, put_together,
};
use coscan_testing::parquet_file;
use coscan_testing::s3::{BUCKET, Fault, KEY_ID, S3Server, SECRET};
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectStore, ObjectStoreExt};
use parquet::file::properties::WriterProperties;
use url::Url;

use super::content;

const FILE_BYTES: usize = 300_000;

/// Timeouts for servers that are silent on purpose: requests are soon given up, and not retried.
const IMPATIENT: Timeouts =
    Timeouts { idle: Duration::from_secs(1), retry: Duration::from_millis(100) };

/// Timeouts for servers that recover: a silent server is asked again.
const PERSISTENT: Timeouts =
    Timeouts { idle: Duration::from_secs(1), retry: Duration::from_secs(60) };

fn store(stores: &Stores) -> Arc<dyn ObjectStore> {
    stores.resolve(&Url::parse(&format!("s3://{BUCKET}/")).unwrap()).unwrap().1
}

async fn server_with_file() -> (S3Server, Vec<u8>, Path) {
    let server = S3Server::start().await;
    let content = content(FILE_BYTES);
    server.put("file", content.clone());
    (server, content, Path::from("file"))
}

fn location(path: &str) -> String {
    format!("s3://{BUCKET}/{path}")
}

/// Asserts that a text that is shown to users reveals no secret.
fn assert_no_secret(text: &str) {
    assert!(!text.contains(SECRET), "{text}");
}

// -- tables

fn rows(start: i64, count: i64) -> RecordBatch {
    let keys = start..start + count;
    let key: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.clone()));
    let price: ArrayRef = Arc::new(Float64Array::from_iter(
        keys.clone().map(|key| (key % 7 != 3).then_some(key as f64 / 3.0)),
    ));
    let name: ArrayRef = Arc::new(StringViewArray::from_iter_values(
        keys.map(|key| format!("the name of row {key}")),
    ));
    RecordBatch::try_from_iter([("key", key), ("price", price), ("name", name)]).unwrap()
}

fn parquet(rows: &RecordBatch) -> Bytes {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1_000)).build();
    parquet_file(std::slice::from_ref(rows), properties).into()
}

async fn open(stores: &Stores, path: &str) -> Result<ParquetTable, String> {
    let opened =
        ParquetTable::open_locations(stores, &[location(path)], FileOptions::default()).await;
    opened.map_err(|error| error.to_string())
}

/// All rows, as a scan reads them: requests, pages, columns of chunks.
async fn read_table(table: &ParquetTable) -> Result<RecordBatch, ReadError> {
    let pages: Vec<_> = (0..table.layout().page_count() as u32).map(PageIndex).collect();
    let mut answers = Vec::new();
    for request in table.requests(&pages, 20_000) {
        let answer = table.read(&request).await;
        answers.push((request, answer));
    }
    let read = put_together(&pages, answers).into_iter().collect::<Result<Vec<_>, _>>()?;
    let read: HashMap<_, _> = pages.into_iter().zip(read).collect();
    let mut batches = Vec::new();
    for chunk in table.layout().chunks() {
        let columns = (0..table.schema().fields().len()).map(|column| {
            let get = |page: PageIndex| read[&page].clone();
            let decoded = table.decode(chunk, column, &get, None, 1_000).unwrap();
            let arrays: Vec<_> = decoded.map(Result::unwrap).collect();
            concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()).unwrap()
        });
        batches.push(RecordBatch::try_new(Arc::clone(table.schema()), columns.collect()).unwrap());
    }
    Ok(concat_batches(table.schema(), &batches).unwrap())
}

async fn server_with_table() -> (S3Server, RecordBatch) {
    let server = S3Server::start().await;
    let rows = rows(0, 12_000);
    server.put("trips/1.parquet", parquet(&rows.slice(0, 5_000)));
    server.put("trips/2.parquet", parquet(&rows.slice(5_000, 7_000)));
    server.put("trips/_SUCCESS", "");
    (server, rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_the_rows_of_its_files() {
    let (server, rows) = server_with_table().await;
    for path in ["trips", "trips/", "trips/*.parquet", "**/*.parquet"] {
        let table = open(&server.stores(), path).await.unwrap();
        assert_eq!(table.parquet_files().len(), 2, "{path}");
        let read = read_table(&table).await.unwrap();
        assert_eq!(read.columns(), rows.columns(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_read_through_faults() {
    let (server, rows) = server_with_table().await;
    let table = open(&server.stores_with_timeouts(PERSISTENT), "trips").await.unwrap();
    server.take_requests();
    let faults =
        [Fault::SlowDown, Fault::Reset(7), Fault::Stall(9), Fault::Silence, Fault::Reset(0)];
    server.fail_next(faults);
    assert_eq!(read_table(&table).await.unwrap().columns(), rows.columns());
    let asked = table.requests(
        &(0..table.layout().page_count() as u32).map(PageIndex).collect::<Vec<_>>(),
        20_000,
    );
    assert_eq!(server.take_requests().len(), asked.len() + faults.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_whose_file_is_replaced_is_an_error() {
    let (server, rows) = server_with_table().await;
    let table = open(&server.stores(), "trips").await.unwrap();
    // The files have the same size: only the condition can tell them apart.
    server.put("trips/2.parquet", parquet(&rows.slice(5_000, 7_000)));
    let error = read_table(&table).await.unwrap_err();
    assert!(
        matches!(&error, ReadError::Changed { file } if file.ends_with("trips/2.parquet")),
        "{error}"
    );
}

// -- requests

#[tokio::test(flavor = "multi_thread")]
async fn ranges_equal_the_file() {
    let (server, content, file) = server_with_file().await;
    let store = store(&server.stores());
    let end = FILE_BYTES as u64;
    let ranges = [0..1, 1..4096, 65_000..65_001, 100_000..299_999, end - 1..end, 0..end];
    for range in &ranges {
        let read = store.get_range(&file, range.clone()).await.unwrap();
        assert!(read == content[range.start as usize..range.end as usize], "{range:?}");
    }
    let read = store.get_ranges(&file, &ranges).await.unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert!(read == content[range.start as usize..range.end as usize], "{range:?}");
    }
    assert!(store.get(&file).await.unwrap().bytes().await.unwrap() == content);
    store.get_range(&file, end..end + 1).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_are_kept() {
    let (server, content, file) = server_with_file().await;
    let store = store(&server.stores());
    let e_tag = store.head(&file).await.unwrap().e_tag;
    assert!(e_tag.is_some());
    let same = GetOptions::new().with_if_match(e_tag.clone()).with_range(Some(5..9));
    let other = GetOptions::new().with_if_none_match(e_tag);
    let read = store.get_opts(&file, same.clone()).await.unwrap().bytes().await.unwrap();
    assert_eq!(read, content[5..9]);
    let error = store.get_opts(&file, other.clone()).await.unwrap_err();
    assert!(matches!(error, Error::NotModified { .. }), "{error}");

    server.put("file", content);
    let error = store.get_opts(&file, same).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
    store.get_opts(&file, other).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said() {
    let (server, _, _) = server_with_file().await;
    let stores = server.stores();
    let error = store(&stores).head(&Path::from("missing")).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let error = list_files(&stores, &location("missing.parquet")).await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    let error = list_files(&stores, "s3://another-bucket/").await.unwrap_err();
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
}

// -- credentials

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_bucket_and_settings_but_no_secret() {
    let (server, _, _) = server_with_file().await;
    let wrong = "wrong-secret-of-forty-characters-for-test";
    let mut options = server.options();
    options.insert("aws.secret_access_key".to_owned(), wrong.to_owned());
    let stores = Stores::new().with_options(StoreOptions::new(options).unwrap());
    let error = list_files(&stores, &location("file")).await.unwrap_err();
    let text = error.to_string();
    for part in [BUCKET, "aws.access_key_id, aws.secret_access_key", "credentials"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(wrong) && !format!("{error:?}").contains(wrong), "{text}");
    let error = store(&stores).get(&Path::from("file")).await.unwrap_err();
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error}");
    assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_and_no_key_are_refused() {
    let (server, _, _) = server_with_file().await;
    let mut options = server.options();
    options.insert("aws.access_key_id".to_owned(), "AKIDOFNOBODY".to_owned());
    let stores = Stores::new().with_options(StoreOptions::new(options.clone()).unwrap());
    let text = list_files(&stores, &location("file")).await.unwrap_err().to_string();
    assert!(text.contains(BUCKET) && text.contains("aws.access_key_id"), "{text}");
    assert_no_secret(&text);

    options.retain(|name, _| !name.contains("key"));
    options.insert("aws.skip_signature".to_owned(), "true".to_owned());
    let stores = Stores::new().with_options(StoreOptions::new(options).unwrap());
    let text = list_files(&stores, &location("file")).await.unwrap_err().to_string();
    assert!(text.contains("those of aws.skip_signature"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_there_are_no_credentials_the_error_says_what_to_set() {
    let (server, _, _) = server_with_file().await;
    let mut options = server.options();
    options.retain(|name, _| !name.contains("key"));
    // The server is no metadata service: requests for metadata fail.
    options.insert("aws.metadata_endpoint".to_owned(), options["aws.endpoint"].clone());
    let stores = Stores::new().with_options(StoreOptions::new(options).unwrap());
    let stores = stores.with_timeouts(IMPATIENT);
    let text = list_files(&stores, &location("file")).await.unwrap_err().to_string();
    for part in ["there are no credentials", "AWS_ACCESS_KEY_ID", "aws.access_key_id"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_an_answer_is_hidden() {
    let (server, _, _) = server_with_file().await;
    let error = store(&server.stores()).head(&Path::from(SECRET)).await.unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(text.contains("[hidden]"), "{text}");
        assert_no_secret(&text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_can_be_printed_shows_a_secret() {
    let (server, _) = server_with_table().await;
    let stores = server.stores();
    let listing = list_files(&stores, &location("trips")).await.unwrap();
    let table = open(&stores, "trips").await.unwrap();
    assert_eq!(table.parquet_files()[0].file().name(), location("trips/1.parquet"));
    for text in [
        format!("{stores:?}"),
        format!("{listing:?}"),
        format!("{:?} {}", listing.store, listing.store),
        format!("{:?}", table.parquet_files()),
    ] {
        assert_no_secret(&text);
        assert!(!text.contains(KEY_ID), "{text}");
    }
}

// -- faults

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_server_is_asked_again() {
    let (server, content, file) = server_with_file().await;
    let store = store(&server.stores());
    server.fail_next([Fault::SlowDown; 3]);
    assert!(store.get_range(&file, 0..1_000).await.unwrap() == content[..1_000]);
    assert_eq!(server.take_requests().len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_overloaded_is_an_error_that_says_so() {
    let (server, _, file) = server_with_file().await;
    let timeouts = Timeouts { retry: Duration::from_secs(1), ..Timeouts::default() };
    let store = store(&server.stores_with_timeouts(timeouts));
    server.fail_always(Fault::SlowDown);
    let error = store.get_range(&file, 0..1_000).await.unwrap_err();
    assert!(matches!(error, Error::Generic { .. }), "{error}");
    // There is the first request, one after 250 to 500 ms, and perhaps one after another such
    // pause.
    let requests = server.take_requests().len();
    assert!((2..=3).contains(&requests), "{requests} requests");
    let text = error.to_string();
    for part in ["asks to slow down", "503", "SlowDown: Please reduce your request rate"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("credentials"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_server_gets_one_request_at_a_time() {
    let (server, content, file) = server_with_file().await;
    let store = store(&server.stores());
    server.fail_next([Fault::SlowDown]);
    store.get_range(&file, 0..1_000).await.unwrap();
    server.take_requests();
    server.fail_always(Fault::SlowDown);
    let range = |start: u64| store.get_range(&file, start..start + 1_000);
    let reads = (0..100).map(|read| range(read * 1_000));
    let results = futures::future::join_all(reads).await;
    assert!(results.iter().all(Result::is_err));
    // All hundred may have been sent before the first was refused. Then one asks every half second or more, for 5 s.
    let requests = server.take_requests().len();
    assert!(requests <= 100 + 20, "{requests} requests");
    server.serve_again();
    assert!(range(5_000).await.unwrap() == content[5_000..6_000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_goes_on_where_it_broke() {
    let (server, content, file) = server_with_file().await;
    let store = store(&server.stores());
    server.fail_next([Fault::Reset(10_000), Fault::Reset(0), Fault::Reset(20_000)]);
    assert!(store.get_range(&file, 100..200_100).await.unwrap() == content[100..200_100]);
    let asked = server.take_requests();
    let ranges: Vec<_> = asked.iter().map(|request| request.split_once('=').unwrap().1).collect();
    assert_eq!(ranges, ["100-200099", "10100-200099", "10100-200099", "30100-200099"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_of_a_file_are_never_mixed() {
    let (server, old, file) = server_with_file().await;
    let store = store(&server.stores());
    server.fail_next([Fault::Reset(10_000)]);
    let result = store.get(&file).await.unwrap();
    server.put("file", content(FILE_BYTES + 1)[1..].to_vec());
    // The rest of the bytes exists, but of another version.
    let error = result.bytes().await.unwrap_err();
    assert!(matches!(error, Error::Generic { .. }), "{error}");
    assert_eq!(server.take_requests().len(), 2);
    assert!(store.get(&file).await.unwrap().bytes().await.unwrap() != old);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_given_up_after_one_try() {
    let (server, _, file) = server_with_file().await;
    let store = store(&server.stores_with_timeouts(IMPATIENT));
    server.fail_always(Fault::Silence);
    let error = store.get_range(&file, 0..1_000).await.unwrap_err();
    assert!(error.to_string().contains("the store sent nothing for 1s"), "{error}");
    assert_eq!(server.take_requests().len(), 1);

    let stores = server.stores_with_timeouts(IMPATIENT);
    let error = list_files(&stores, &location("trips/")).await.unwrap_err().to_string();
    assert!(error.contains("sent nothing") && error.contains("the network"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_given_up() {
    let (server, _, file) = server_with_file().await;
    let store = store(&server.stores_with_timeouts(IMPATIENT));
    server.fail_always(Fault::Stall(10_000));
    let error = store.get_range(&file, 0..200_000).await.unwrap_err();
    assert!(error.to_string().contains("the store sent nothing for 1s"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_a_silent_server_does_not_open() {
    let (server, _) = server_with_table().await;
    let stores = server.stores_with_timeouts(IMPATIENT);
    let files = list_files(&stores, &location("trips")).await.unwrap();
    server.fail_always(Fault::Silence);
    let files = files.files.iter().map(|meta| TableFile {
        store: Arc::clone(&files.store),
        store_url: files.store_url.clone(),
        meta: meta.clone(),
    });
    let error = ParquetTable::open(files.collect(), FileOptions::default()).await.unwrap_err();
    assert!(matches!(error, TableError::Read(ReadError::Store { .. })), "{error}");
    assert!(error.to_string().contains("sent nothing"), "{error}");
}

// -- listings

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_of_many_pages_is_whole() {
    let server = S3Server::start().await;
    let names: Vec<_> = (0..10_500).map(|file| format!("many/{file:05}.parquet")).collect();
    names.iter().for_each(|name| server.put(name, "x"));
    // A page has a thousand names. Without the slash it may be a file, which is asked first.
    for (path, requests) in [("many/", 11), ("many", 12), ("many/*.parquet", 11), ("many/**", 11)] {
        server.take_requests();
        let listing = list_files(&server.stores(), &location(path)).await.unwrap();
        let found: Vec<_> = listing.files.iter().map(|file| file.location.to_string()).collect();
        assert_eq!(found, names, "{path}");
        assert_eq!(server.take_requests().len(), requests, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_lists_only_what_may_match() {
    let server = S3Server::start().await;
    for month in 0..40 {
        for day in 0..30 {
            server.put(&format!("y/m{month:02}/d{day:02}/a.parquet"), "x");
        }
    }
    let listing = list_files(&server.stores(), &location("y/m1*/d0*/*.parquet")).await.unwrap();
    assert_eq!(listing.files.len(), 100);
    // One request for the months, the days of ten months, and the files of a hundred days.
    assert_eq!(server.take_requests().len(), 1 + 10 + 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_with_odd_characters_are_found_and_read() {
    let server = S3Server::start().await;
    let names = [
        "odd/a b.parquet",
        "odd/100%.parquet",
        "odd/a%20b.parquet",
        "odd/plus+minus.parquet",
        "odd/größe 日本.parquet",
        "odd/a#b&c=d.parquet",
        "odd/semi;colon,comma.parquet",
    ];
    names.iter().for_each(|name| server.put(name, name.as_bytes().to_vec()));
    let stores = server.stores();
    let listing = list_files(&stores, &location("odd/")).await.unwrap();
    let mut found: Vec<_> = listing.files.iter().map(|file| file.location.to_string()).collect();
    found.sort();
    let mut expected = names.map(str::to_owned);
    expected.sort();
    assert_eq!(found, expected);
    for file in &listing.files {
        let read = listing.store.get(&file.location).await.unwrap().bytes().await.unwrap();
        assert_eq!(read, file.location.as_ref());
    }
    // URLs as users write them: only the percent sign of an escape is escaped.
    for (written, name) in [
        ("odd/a b.parquet", names[0]),
        ("odd/a%20b.parquet", names[0]),
        ("odd/100%.parquet", names[1]),
        ("odd/a%2520b.parquet", names[2]),
        ("odd/plus+minus.parquet", names[3]),
        ("odd/größe 日本.parquet", names[4]),
        ("odd/a#b&c=d.parquet", names[5]),
        ("odd/a b*", names[0]),
        ("odd/größe*", names[4]),
    ] {
        let listing = list_files(&stores, &location(written)).await.unwrap();
        assert_eq!(listing.files[0].location.as_ref(), name, "{written}");
        assert_eq!(listing.files.len(), 1, "{written}");
    }
}
