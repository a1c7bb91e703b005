use std::fs;

use coscan_storage::stores::DirectFileStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use tempfile::TempDir;

use super::content;

/// A size of more than one piece of a streamed file, and not a multiple of anything.
const FILE_BYTES: usize = 9 * 1024 * 1024 + 1237;

fn store_with_file(content: &[u8]) -> (TempDir, DirectFileStore, Path) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), content).unwrap();
    let store = DirectFileStore::new_with_prefix(directory.path()).unwrap();
    (directory, store, Path::from("file"))
}

fn replace(directory: &TempDir, content: &[u8]) {
    let other = directory.path().join("other");
    fs::write(&other, content).unwrap();
    fs::rename(other, directory.path().join("file")).unwrap();
}

#[tokio::test]
async fn odd_ranges_equal_the_file() {
    let content = content(FILE_BYTES);
    let (_directory, store, path) = store_with_file(&content);
    let end = FILE_BYTES as u64;
    let ranges = [
        0..1,
        0..4096,
        1..4096,
        4095..4097,
        4096..8192,
        5000..5001,
        100..8_500_001,
        end - 1..end,
        end - 4097..end,
        0..end,
    ];
    for range in &ranges {
        let read = store.get_range(&path, range.clone()).await.unwrap();
        assert!(read == content[range.start as usize..range.end as usize], "{range:?}");
    }
    let read = store.get_ranges(&path, &ranges).await.unwrap();
    for (range, read) in ranges.iter().zip(read) {
        assert!(read == content[range.start as usize..range.end as usize], "{range:?}");
    }
}

#[tokio::test]
async fn whole_files_suffixes_and_offsets_equal_the_file() {
    let content = content(FILE_BYTES);
    let (_directory, store, path) = store_with_file(&content);
    assert!(store.get(&path).await.unwrap().bytes().await.unwrap() == content);

    for (wanted, start) in
        [(GetRange::Suffix(70_001), FILE_BYTES - 70_001), (GetRange::Offset(4_097), 4_097)]
    {
        let options = GetOptions::new().with_range(Some(wanted));
        let result = store.get_opts(&path, options).await.unwrap();
        assert_eq!(result.range, start as u64..FILE_BYTES as u64);
        assert!(result.bytes().await.unwrap() == content[start..]);
    }
}

#[tokio::test]
async fn past_the_end_one_range_is_cut_and_several_are_an_error() {
    let content = content(10_000);
    let (_directory, store, path) = store_with_file(&content);
    assert!(store.get_range(&path, 9_990..20_000).await.unwrap() == content[9_990..]);
    assert!(store.get_range(&path, 10_000..10_001).await.is_err());

    let error = store.get_ranges(&path, &[0..10, 9_990..10_001]).await.unwrap_err();
    assert!(error.to_string().contains("file has 10000 bytes"), "{error}");
    let empty = store.get_ranges(&path, &[5..5, 3..4]).await.unwrap();
    assert_eq!(empty[0].len(), 0);
    assert_eq!(empty[1], content[3..4]);
}

#[tokio::test]
async fn an_empty_file_is_read_as_empty() {
    let (_directory, store, path) = store_with_file(b"");
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "");
    assert_eq!(store.get_ranges(&path, &[]).await.unwrap().len(), 0);
}

#[tokio::test]
async fn metadata_agrees_with_the_local_file_system() {
    let (directory, store, path) = store_with_file(b"abc");
    let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
    let expected = local.head(&path).await.unwrap();
    assert!(expected.e_tag.is_some());
    assert_eq!(store.head(&path).await.unwrap(), expected);
    assert_eq!(store.get(&path).await.unwrap().meta, expected);
}

#[tokio::test]
async fn a_file_replaced_since_it_was_listed_fails_the_precondition() {
    let (directory, store, path) = store_with_file(b"old content");
    let listed = store.head(&path).await.unwrap();
    let options = GetOptions::new().with_if_match(listed.e_tag.clone()).with_range(Some(0..3));
    let read = store.get_opts(&path, options.clone()).await.unwrap().bytes().await.unwrap();
    assert_eq!(read, "old");

    replace(&directory, b"new content");
    let error = store.get_opts(&path, options).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
}

#[tokio::test]
async fn a_file_modified_since_fails_the_precondition() {
    let (_directory, store, path) = store_with_file(b"content");
    let modified = store.head(&path).await.unwrap().last_modified;
    let earlier = modified - std::time::Duration::from_secs(1);
    let unmodified_since =
        |time| GetOptions::new().with_if_unmodified_since(Some(time)).with_range(Some(0..3));
    assert!(store.get_opts(&path, unmodified_since(modified)).await.is_ok());
    let error = store.get_opts(&path, unmodified_since(earlier)).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
}

#[tokio::test]
async fn bytes_are_those_of_the_file_that_was_checked() {
    let (directory, store, path) = store_with_file(b"old content");
    let checked = store.get(&path).await.unwrap();
    replace(&directory, b"new content");
    assert_eq!(checked.bytes().await.unwrap(), "old content");
}

#[tokio::test]
async fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let (directory, store, path) = store_with_file(&content(10_000));
    let opened = store.get(&path).await.unwrap();
    fs::File::options()
        .write(true)
        .open(directory.path().join("file"))
        .unwrap()
        .set_len(5_000)
        .unwrap();
    let error = opened.bytes().await.unwrap_err();
    assert!(error.to_string().contains("ends at byte 5000"), "{error}");
}

#[tokio::test]
async fn a_missing_file_and_a_directory_are_not_found() {
    let (directory, store, _path) = store_with_file(b"");
    fs::create_dir(directory.path().join("directory")).unwrap();
    for name in ["missing", "directory"] {
        let path = Path::from(name);
        for error in [
            store.get(&path).await.unwrap_err(),
            store.get_ranges(&path, &[0..1, 2..3]).await.unwrap_err(),
            store.head(&path).await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::NotFound { .. }), "{name}: {error}");
        }
    }
}

/// Reads work without tokio, as in object_store's own local store.
#[test]
fn reads_outside_of_a_runtime() {
    let (_directory, store, path) = store_with_file(b"0123456789");
    let read = futures::executor::block_on(store.get_ranges(&path, &[2..4])).unwrap();
    assert_eq!(read, ["23"]);
}

#[tokio::test]
async fn a_file_overwritten_in_place_since_it_was_checked_is_an_error() {
    let (directory, store, path) = store_with_file(b"old content");
    let listed = store.head(&path).await.unwrap();
    let options = GetOptions::new().with_if_match(listed.e_tag).with_range(Some(0..3));
    let checked = store.get_opts(&path, options).await.unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(directory.path().join("file")).unwrap();
    std::io::Write::write_all(&mut file, b"new").unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(1)).unwrap();
    let error = checked.bytes().await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
}
