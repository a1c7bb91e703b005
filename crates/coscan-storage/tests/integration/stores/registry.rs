use std::sync::Arc;

use coscan_storage::stores::{StoreError, Stores};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use url::Url;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn error_of(text: &str) -> StoreError {
    Stores::new().resolve(&url(text)).unwrap_err()
}

#[test]
fn stores_of_known_schemes_are_made_once() {
    let stores = Stores::new();
    for (location, root) in [
        ("file:///a/b.parquet", "file:///"),
        ("https://host:8080/a/b.parquet", "https://host:8080/"),
        ("http://host/a.parquet", "http://host/"),
        ("s3://bucket/a/b.parquet", "s3://bucket/"),
        ("s3://bucket", "s3://bucket/"),
        ("gs://bucket/a/b.parquet", "gs://bucket/"),
    ] {
        let (store_url, store) = stores.resolve(&url(location)).unwrap();
        assert_eq!(
            url(root).as_str().trim_end_matches('/'),
            store_url.as_str().trim_end_matches('/')
        );
        let (_, again) = stores.clone().resolve(&url(root)).unwrap();
        assert!(Arc::ptr_eq(&store, &again), "{location}");
    }
}

#[test]
fn the_longest_registered_prefix_wins() {
    let stores = Stores::new();
    let whole: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let part: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    stores.register(&url("file:///"), Arc::clone(&whole));
    stores.register(&url("file:///fast"), Arc::clone(&part));

    for (location, expected) in [
        ("file:///a.parquet", &whole),
        ("file:///faster/a.parquet", &whole),
        ("file:///fast/a.parquet", &part),
        ("file:///fast", &part),
    ] {
        let (store_url, store) = stores.resolve(&url(location)).unwrap();
        assert!(Arc::ptr_eq(&store, expected), "{location}");
        assert_eq!(store_url.as_str(), "file:///");
    }
}

#[test]
fn an_unknown_scheme_names_those_that_work() {
    assert_eq!(
        error_of("ftp://host/a.parquet").to_string(),
        "no store is known for \"ftp:\" in ftp://host/. These work: a local path, file://, http://, \
         https://, s3://, gs://, az://, abfs://, abfss://. For others, register a store first"
    );
    let stores = Stores::new();
    stores.register(&url("memory:///"), Arc::new(InMemory::new()));
    let error = stores.resolve(&url("ftp://host/a")).unwrap_err();
    assert!(error.to_string().contains("abfss://, memory:///. For"), "{error}");
}

#[test]
fn a_missing_bucket_is_an_error() {
    let error = error_of("s3:///a.parquet");
    assert!(matches!(error, StoreError::MissingBucket { .. }), "{error}");
    assert_eq!(error.to_string(), "s3:/// names no bucket. Write s3://bucket/path");
}

#[test]
fn a_file_url_with_a_host_is_an_error() {
    let error = error_of("file://data/a.parquet");
    assert!(error.to_string().contains("three slashes: file:///path"), "{error}");
}
