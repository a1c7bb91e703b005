//! The generated table conforms to TPC-H, and is stored as the reports describe it.

use std::cell::RefCell;
use std::fs::{self, File};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use coscan_bench::tpch::{self, ROW_GROUP_ROWS, TpchError};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Compression;
use parquet::file::metadata::PageIndexPolicy;
use tpchgen::generators::LineItemGenerator;

/// Checks the file of one scale. Returns the number of rows of each row group.
fn check(scale_factor: f64, rows_expected: i64) -> Vec<i64> {
    let directory = tempfile::tempdir().expect("a directory");
    let calls = RefCell::new(Vec::new());
    let path = tpch::lineitem(directory.path(), scale_factor, &|done, total| {
        calls.borrow_mut().push((done, total));
    })
    .expect("the table is made");

    let rows = rows_expected as u64;
    assert_eq!(calls.borrow().last(), Some(&(rows, rows)));
    assert!(calls.borrow().iter().map(|(done, _)| done).is_sorted());
    assert_eq!(fs::read_dir(directory.path()).expect("listing").count(), 1, "nothing half-made");

    let file = File::open(&path).expect("the file");
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = ArrowReaderMetadata::load(&file, options).expect("a footer with page index");
    let parquet = metadata.metadata();
    assert_eq!(parquet.file_metadata().num_rows(), rows_expected);
    for group in parquet.row_groups() {
        assert!(group.sorting_columns().is_none());
        for column in group.columns() {
            assert_eq!(column.compression(), Compression::SNAPPY);
            assert!(column.statistics().is_some());
        }
    }

    let groups = parquet.row_groups().iter().map(|group| group.num_rows()).collect();
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    let mut last = (0, 0);
    for batch in reader.build().expect("a reader") {
        let batch = batch.expect("rows");
        let orders = batch["l_orderkey"].as_primitive::<Int64Type>();
        let lines = batch["l_linenumber"].as_primitive::<arrow::datatypes::Int32Type>();
        for row in orders.values().iter().copied().zip(lines.values().iter().copied()) {
            assert!(last < row, "{row:?} after {last:?}");
            last = row;
        }
    }
    groups
}

#[test]
fn a_small_table_is_one_row_group() {
    assert_eq!(check(0.01, 60_175), [60_175]);
}

#[test]
fn a_larger_table_is_cut_into_full_row_groups() {
    let full = ROW_GROUP_ROWS as i64;
    // One generator returns the rows that the parallel parts must return together.
    let rows = LineItemGenerator::new(0.05, 1, 1).iter().count() as i64;
    assert_eq!(check(0.05, rows), [full, full, rows - 2 * full]);
}

#[test]
fn a_table_that_is_there_is_kept_and_a_half_made_one_is_not_taken_for_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = tpch::lineitem_path(directory.path(), 0.01);
    let partial = path.with_extension("parquet.partial");
    fs::write(&partial, vec![7; 50_000_000]).expect("a half-made file");
    tpch::lineitem(directory.path(), 0.01, &|_, _| {}).expect("the table is made");
    assert!(!partial.exists());
    let bytes = fs::metadata(&path).expect("the file").len();
    assert!(bytes < 10_000_000, "{bytes} bytes: what the interrupted run left is still there");

    fs::write(&path, b"mine").expect("overwritten");
    tpch::lineitem(directory.path(), 0.01, &|_, _| panic!("made again")).expect("the path");
    assert_eq!(fs::read(&path).expect("the file"), b"mine");
}

#[test]
fn a_scale_factor_that_makes_no_sense_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    for scale_factor in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        let result = tpch::lineitem(directory.path(), scale_factor, &|_, _| {});
        assert!(matches!(result, Err(TpchError::ScaleFactor(_))), "{scale_factor}");
    }
}
