//! Files that several tables share.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use coscan_core::{ChunkIndex, PageIndex};
use coscan_storage::table::{
    FileOptions, FileToOpen, PageLayout, ParquetFile, ParquetTable, TableError, put_together,
};
use object_store::ObjectStoreExt;

use crate::table::support::{options, row_groups, rows, store, write};

#[tokio::test]
async fn a_version_is_the_same_until_the_file_is_written_again() {
    let (memory, files) = store(&[write(&[rows(0..10)], row_groups(10))]).await;
    let path = files[0].meta.location.clone();
    let first = files[0].version();
    assert_eq!(first, files[0].clone().version());
    assert_eq!(first.to_string(), "memory:///table/0.parquet");
    assert_eq!((first.path(), first.size()), (&path, files[0].meta.size));

    let mut rewritten = files[0].clone();
    memory.put(&path, write(&[rows(0..10)], row_groups(10)).into()).await.unwrap();
    rewritten.meta = memory.head(&path).await.unwrap();
    let mut elsewhere = files[0].clone();
    elsewhere.store_url = "memory://other/".parse().unwrap();
    let mut touched = files[0].clone();
    touched.meta.e_tag = None;
    let mut later = touched.clone();
    later.meta.last_modified += std::time::Duration::from_nanos(1);
    let all = [first, rewritten.version(), elsewhere.version(), touched.version(), later.version()];
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

#[tokio::test]
async fn tables_of_the_same_files_share_them_and_read_nothing_again() {
    let bytes = [
        write(&[rows(0..300)], row_groups(100)),
        write(&[rows(0..0)], row_groups(100)),
        write(&[rows(300..500)], row_groups(100)),
    ];
    let (memory, listed) = store(&bytes).await;
    let mut files = Vec::new();
    for file in listed {
        files.push(ParquetFile::open(file.clone(), options(100)).await.unwrap());
        // An open file needs no store any more.
        memory.delete(&file.meta.location).await.unwrap();
    }
    let all = ParquetTable::of_files(files.clone()).unwrap();
    let last = ParquetTable::of_files(vec![Arc::clone(&files[2])]).unwrap();
    assert!(Arc::ptr_eq(&all.parquet_files()[2], &last.parquet_files()[0]));
    let places: Vec<_> = all.layout().chunks().map(|chunk| all.place_of(chunk)).collect();
    let place = |file, chunk| (file, ChunkIndex(chunk));
    assert_eq!(places, [place(0, 0), place(0, 1), place(0, 2), place(2, 0), place(2, 1)]);
    assert_eq!(last.place_of(ChunkIndex(1)), (0, ChunkIndex(1)));
    assert_eq!(all.layout().row_count(), 500);
    assert_eq!(all.file_column(2, 3), Some(3));
    // A value that one table has computed from a file is found by the other.
    all.statistics(0).unwrap();
    let computed = files[2].statistics(0).unwrap();
    assert!(std::ptr::eq(computed, last.parquet_files()[0].statistics(0).unwrap()));
}

#[tokio::test]
async fn a_file_alone_is_as_it_is_in_a_table() {
    let bytes = [write(&[rows(0..100)], row_groups(50)), write(&[rows(0..700)], row_groups(100))];
    for layout in [PageLayout::Column, PageLayout::Row] {
        let (_, listed) = store(&bytes).await;
        let file_options = FileOptions { chunk_rows: 200, layout, ..FileOptions::default() };
        let table = ParquetTable::open(listed, file_options).await.unwrap();
        let file = &table.parquet_files()[1];
        assert_eq!((file.options(), file.row_count()), (file_options, 700));
        let pages: Vec<_> = (0..file.page_count() as u32).map(PageIndex).collect();
        let mut answers = Vec::new();
        for request in file.requests(&pages, 10_000) {
            let answer = file.read(&request).await;
            answers.push((request, answer));
        }
        let read = put_together(&pages, answers);
        let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
        let first_page = table.layout().page_count() - pages.len();
        let of_table: Vec<_> =
            pages.iter().map(|page| PageIndex(page.0 + first_page as u32)).collect();
        for ((page, global), bytes) in pages.iter().zip(&of_table).zip(&read) {
            assert_eq!(file.page_bytes(*page), bytes.len() as u64);
            assert_eq!(table.layout().bytes_of(*global), bytes.len() as u64);
        }
        for chunk in (0..file.chunk_count() as u32).map(ChunkIndex) {
            let first_chunk = table.layout().chunk_count() - file.chunk_count();
            let in_table = ChunkIndex(chunk.0 + first_chunk as u32);
            assert_eq!(table.place_of(in_table), (1, chunk));
            let rows = [1..2, 50..file.chunk_rows(chunk)];
            for column in 0..table.schema().fields().len() {
                let local = |page: PageIndex| read[page.0 as usize].clone();
                let global = |page: PageIndex| read[page.0 as usize - first_page].clone();
                let alone = file.decode(chunk, column, &local, Some(&rows), 64).unwrap();
                let within = table.decode(in_table, column, &global, Some(&rows), 64).unwrap();
                let alone: Vec<_> = alone.map(Result::unwrap).collect();
                assert_eq!(alone, within.map(Result::unwrap).collect::<Vec<_>>());
                let group = table.group_of_column(column);
                let needed = file.pages_of_rows(chunk, column, &rows);
                assert_eq!(table.pages_of_rows(in_table, group, &rows).len(), needed.len());
                assert!(needed.iter().all(|page| file.slice(chunk, column).contains(page)));
            }
        }
    }
}

#[tokio::test]
async fn what_a_file_takes_in_memory_grows_with_what_is_asked_of_it() {
    let (_, listed) = store(&[write(&[rows(0..1000)], row_groups(100))]).await;
    let file = ParquetFile::open(listed[0].clone(), options(100)).await.unwrap();
    let opened = file.memory_bytes();
    assert!(opened > file.metadata().memory_size() as u64);
    file.statistics(0).unwrap();
    let asked = file.memory_bytes();
    assert!(asked > opened + 2 * 10 * 8, "{asked} after {opened}");
    file.statistics(0).unwrap();
    assert_eq!(file.memory_bytes(), asked, "computed once");
}

#[tokio::test]
async fn a_table_of_many_files_is_made_in_one_pass() {
    let (_, listed) = store(&[write(&[rows(0..10)], row_groups(10))]).await;
    let first = ParquetFile::open(listed[0].clone(), options(10)).await.unwrap();
    let mut files = Vec::new();
    for number in 0..20_000 {
        let mut file = listed[0].clone();
        file.meta.location = format!("table/{number}.parquet").into();
        let open = FileToOpen { file, footer: Some(Arc::clone(first.metadata())) };
        files.push(ParquetFile::open(open, options(10)).await.unwrap());
    }
    let table = ParquetTable::of_files(files).unwrap();
    let last = ChunkIndex(19_999);
    assert_eq!(table.place_of(last), (19_999, ChunkIndex(0)));
    assert_eq!(table.layout().rows(last), 199_990..200_000);
}

#[tokio::test]
async fn no_files_are_no_table() {
    assert!(matches!(ParquetTable::of_files(vec![]), Err(TableError::NoFiles)));
}

#[tokio::test]
async fn a_footer_that_is_given_is_not_read() {
    let (memory, listed) = store(&[write(&[rows(0..300)], row_groups(100))]).await;
    let read = ParquetFile::open(listed[0].clone(), options(100)).await.unwrap();
    memory.delete(&listed[0].meta.location).await.unwrap();
    let with = |footer| FileToOpen { file: listed[0].clone(), footer: Some(Arc::new(footer)) };
    let footer = read.metadata().as_ref().clone();
    let given = ParquetFile::open(with(footer.clone()), options(100)).await.unwrap();
    assert_eq!((given.chunk_count(), given.page_count()), (3, read.page_count()));
    assert_eq!(given.fields(), read.fields());
    // Chunks are cut along the page index: a footer without the one that the file has is not whole.
    for footer in [
        footer.clone().into_builder().set_offset_index(None).build(),
        footer.clone().into_builder().set_column_index(None).build(),
    ] {
        let error = ParquetFile::open(with(footer), options(100)).await.err();
        assert!(matches!(error, Some(TableError::Read(_))), "{error:?}");
    }
    // A given footer is checked as one that was read.
    let mut short = with(footer);
    short.file.meta.size = 100;
    let error = ParquetFile::open(short, options(100)).await.err();
    assert!(matches!(error, Some(TableError::Corrupt { .. })), "{error:?}");
}

#[tokio::test]
async fn a_file_that_is_listed_twice_is_refused() {
    let bytes = [write(&[rows(0..300)], row_groups(100)), write(&[rows(0..300)], row_groups(100))];
    let (_memory, listed) = store(&bytes).await;
    let again = vec![listed[0].clone(), listed[1].clone(), listed[0].clone()];
    let error = ParquetTable::open(again, options(100)).await.unwrap_err().to_string();
    assert!(error.contains("0.parquet is listed twice"), "{error}");
    // The same path in another store is another file.
    let (_other, elsewhere) = store(&bytes).await;
    let table = ParquetTable::open(vec![listed[0].clone(), elsewhere[0].clone()], options(100));
    assert_eq!(table.await.unwrap().layout().row_count(), 600);
}
