use std::fs;
use std::sync::Arc;

use coscan_storage::stores::{StoreError, Stores, list_files};
use coscan_testing::{Fate, Faults};
use object_store::memory::InMemory;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Url;

use super::memory_with;

const FILES: [&str; 9] = [
    "t/b.parquet",
    "t/a.parquet",
    "t/c.parq",
    "t/notes.txt",
    "t/_temporary/x.parquet",
    "t/.hidden.parquet",
    "t/_day=1/p.parquet",
    "t/deep/er/d.parquet",
    "u/a.parquet",
];

fn directory_with_files() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for file in FILES {
        let path = directory.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    directory
}

async fn memory_stores() -> Stores {
    let files: Vec<_> = FILES.iter().map(|file| (*file, file.as_bytes().to_vec())).collect();
    let stores = Stores::new();
    stores.register(&Url::parse("memory:///").unwrap(), memory_with(&files).await);
    stores
}

/// The names at a location, with `root` removed, or the error.
async fn names(stores: &Stores, root: &str, location: &str) -> Result<Vec<String>, StoreError> {
    let listing = list_files(stores, &format!("{root}{location}")).await?;
    let root = root.split("://").last().unwrap().trim_start_matches('/');
    Ok(listing
        .files
        .iter()
        .map(|file| file.location.as_ref().strip_prefix(root).unwrap().to_owned())
        .collect())
}

/// Checks the names at several locations, which are the same on every store.
async fn check_locations(stores: &Stores, root: &str) {
    let table = ["t/_day=1/p.parquet", "t/a.parquet", "t/b.parquet", "t/deep/er/d.parquet"];
    for (location, expected) in [
        ("t/a.parquet", &["t/a.parquet"][..]),
        ("t/notes.txt", &["t/notes.txt"]),
        ("t/_temporary/x.parquet", &["t/_temporary/x.parquet"]),
        ("t", &table),
        ("t/", &table),
        ("t/deep", &["t/deep/er/d.parquet"]),
        ("t/*.parquet", &["t/a.parquet", "t/b.parquet"]),
        ("t/?.par*", &["t/a.parquet", "t/b.parquet", "t/c.parq"]),
        ("t/[bc].*", &["t/b.parquet", "t/c.parq"]),
        ("*/a.parquet", &["t/a.parquet", "u/a.parquet"]),
        ("t/**/[dx].parquet", &["t/deep/er/d.parquet"]),
        ("**/a.parquet", &["t/a.parquet", "u/a.parquet"]),
        ("t/_temp*/*.parquet", &["t/_temporary/x.parquet"]),
        ("t/.h*", &["t/.hidden.parquet"]),
        ("t/*/p.parquet", &["t/_day=1/p.parquet"]),
    ] {
        assert_eq!(names(stores, root, location).await.unwrap(), expected, "{location}");
    }
}

#[tokio::test]
async fn locations_on_the_local_disk() {
    let directory = directory_with_files();
    let root = format!("{}/", directory.path().display());
    check_locations(&Stores::new(), &root).await;
    check_locations(&Stores::new(), &format!("file://{root}")).await;
}

#[tokio::test]
async fn locations_in_another_store() {
    let stores = memory_stores().await;
    check_locations(&stores, "memory:///").await;
    assert_eq!(names(&stores, "memory:///", "").await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_listing_says_where_its_files_are() {
    let directory = directory_with_files();
    let file = directory.path().join("t/a.parquet");
    let listing = list_files(&Stores::new(), file.to_str().unwrap()).await.unwrap();
    assert_eq!(listing.store_url.as_str(), "file:///");
    assert_eq!(listing.files[0].size, "t/a.parquet".len() as u64);
    assert!(listing.store.to_string().starts_with("DirectFileStore"));
}

#[tokio::test]
async fn names_that_look_like_patterns_and_paths_that_go_up() {
    let directory = directory_with_files();
    let root = directory.path().display();
    fs::write(directory.path().join("t/a[1].parquet"), "").unwrap();
    let listing = list_files(&Stores::new(), &format!("{root}/u/../t/a[1].parquet")).await.unwrap();
    assert_eq!(listing.files[0].location.filename(), Some("a[1].parquet"));
    assert_eq!(listing.files[0].size, 0);
}

#[tokio::test]
async fn relative_paths_start_at_the_current_directory() {
    let here = std::env::current_dir().unwrap();
    let listing = list_files(&Stores::new(), "Cargo.toml").await.unwrap();
    let expected = object_store::path::Path::from_absolute_path(here.join("Cargo.toml")).unwrap();
    assert_eq!(listing.files[0].location, expected);
    assert_eq!(list_files(&Stores::new(), "C*.toml").await.unwrap().files[0].location, expected);
}

async fn error_of(location: &str) -> String {
    list_files(&Stores::new(), location).await.unwrap_err().to_string()
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let directory = directory_with_files();
    fs::create_dir(directory.path().join("empty")).unwrap();
    let root = directory.path().display().to_string();
    let here = std::env::current_dir().unwrap().display().to_string();

    for missing in [format!("{root}/none.parquet"), format!("{root}/../none/x"), "none/".into()] {
        let expected =
            format!("{missing} does not exist. Check the name; relative paths start at {here}");
        assert_eq!(error_of(&missing).await, expected);
    }
    for empty in [format!("{root}/empty"), format!("{root}/t/_temporary/../../empty/")] {
        let error = error_of(&empty).await;
        assert!(error.starts_with(&format!("{empty} is a directory without Parquet files.")));
    }
    let error = error_of(&format!("{root}/t/*.csv")).await;
    assert!(error.starts_with(&format!("no file matches {root}/t/*.csv.")), "{error}");

    for (location, expected) in [
        ("", "\"\" is not a usable location: it is empty. Write a path or a URL"),
        ("http://[bad/x", "\"http://[bad/x\" is not a usable location: invalid IPv6 address"),
        ("https://host/a?key=1", "a query after ? cannot be sent. Use a URL without one"),
        ("t/a**", "Use *, ?, [..], or ** between slashes"),
        (
            "ftp://host/a",
            "These work: a local path, file://, http://, https://, s3://, gs://, az://,",
        ),
        ("file:///none/a", "file:///none/a does not exist. Check the URL"),
        ("s3:///a", "s3:/// names no bucket. Write s3://bucket/path"),
    ] {
        let error = error_of(location).await;
        assert!(error.contains(expected), "{location}: {error}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_an_error() {
    let stores = Stores::new();
    let broken = Faults::new(|_| Fate::Fail).around(Arc::new(InMemory::new()));
    stores.register(&Url::parse("memory:///").unwrap(), broken);
    let error = list_files(&stores, "memory:///a.parquet").await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    assert!(error.to_string().starts_with("cannot read memory:///a.parquet: "), "{error}");
    assert!(error.to_string().contains("Check that you may read it"), "{error}");
}

/// Starts a web server that has no files and does not list directories. Returns its address.
async fn server_without_files() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                match connection.read_u8().await {
                    Ok(byte) => request.push(byte),
                    Err(_) => break,
                }
            }
            let status = match request.starts_with(b"HEAD") {
                true => "404 Not Found",
                false => "405 Method Not Allowed",
            };
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            connection.write_all(head.as_bytes()).await.unwrap();
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_web_server_that_lacks_a_file_is_told_from_one_that_does_not_list() {
    let server = server_without_files().await;
    for (location, expected) in [
        ("t/a.parquet", "t/a.parquet does not exist. Check the URL"),
        ("t/", "does not list directories"),
        ("t/*.parquet", "does not list directories"),
    ] {
        let error = list_files(&Stores::new(), &format!("{server}/{location}")).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{location}: {error}");
    }
}
