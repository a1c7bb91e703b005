//! `store_sales` of TPC-DS and its dimensions, small.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow::array::{AsArray, BooleanArray, RecordBatch, RecordBatchReader};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int32Type;
use tempfile::TempDir;
use tpcdsgen::config::{Session, SessionBuilder};
use tpcdsgen_arrow as tpcds;

use crate::support::Tables;

/// The scale, at which `store_sales` has 120 thousand rows.
const SCALE: f64 = 0.02;
const CHUNK_ROWS: u64 = 2048;
/// The memory for operators. Each partition of each sort below a merge join holds 10 MB.
const OPERATOR_BYTES: u64 = 4 << 30;

/// The tables by the column whose order their rows have.
const KEYS: [(&str, &str); 10] = [
    ("store_sales", "ss_ticket_number"),
    ("customer", "c_customer_sk"),
    ("customer_address", "ca_address_sk"),
    ("customer_demographics", "cd_demo_sk"),
    ("date_dim", "d_date_sk"),
    ("household_demographics", "hd_demo_sk"),
    ("item", "i_item_sk"),
    ("promotion", "p_promo_sk"),
    ("store", "s_store_sk"),
    ("time_dim", "t_time_sk"),
];

/// The tables, in files with row groups as small as chunks. They stay in the directory `COSCAN_TPCDS_DATA` if that is
/// set, for DuckDB to read.
pub(crate) fn tables() -> Tables<'static> {
    static DATA: OnceLock<(PathBuf, Option<TempDir>)> = OnceLock::new();
    let (directory, _) = DATA.get_or_init(|| {
        let (directory, temporary) = match std::env::var_os("COSCAN_TPCDS_DATA") {
            Some(directory) => (PathBuf::from(directory), None),
            None => {
                let temporary = tempfile::tempdir().unwrap();
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        std::fs::create_dir_all(&directory).unwrap();
        write(&in_directory(&directory));
        (directory, temporary)
    });
    in_directory(directory)
}

fn in_directory(directory: &Path) -> Tables<'_> {
    let keys = &KEYS;
    Tables { directory, keys, chunk_rows: CHUNK_ROWS, operator_bytes: OPERATOR_BYTES }
}

fn write(tables: &Tables<'_>) {
    let session = || SessionBuilder::new().with_scale_factor(SCALE).build().unwrap();
    let mut demographics = HashSet::new();
    for (name, _) in KEYS {
        let rows = generator(name, session());
        let schema = rows.schema();
        let rows = rows.map(|batch| {
            let batch = batch.unwrap();
            match name {
                "store_sales" => {
                    let column = batch.column_by_name("ss_cdemo_sk").unwrap();
                    demographics.extend(column.as_primitive::<Int32Type>().iter().flatten());
                    batch
                }
                "customer_demographics" => of_demographics(&batch, &demographics),
                _ => batch,
            }
        });
        tables.write(name, schema, rows);
    }
}

/// The rows with these keys. The table has two million rows at every scale, and a join with `store_sales` does not need
/// the others.
fn of_demographics(batch: &RecordBatch, keys: &HashSet<i32>) -> RecordBatch {
    let column = batch.column_by_name("cd_demo_sk").unwrap().as_primitive::<Int32Type>();
    let is_needed: BooleanArray =
        column.iter().map(|key| Some(key.is_some_and(|key| keys.contains(&key)))).collect();
    filter_record_batch(batch, &is_needed).unwrap()
}

fn generator(table: &str, session: Session) -> Box<dyn RecordBatchReader> {
    match table {
        "store_sales" => Box::new(tpcds::StoreSalesArrow::new(session)),
        "customer" => Box::new(tpcds::CustomerArrow::new(session)),
        "customer_address" => Box::new(tpcds::CustomerAddressArrow::new(session)),
        "customer_demographics" => Box::new(tpcds::CustomerDemographicsArrow::new(session)),
        "date_dim" => Box::new(tpcds::DateDimArrow::new(session)),
        "household_demographics" => Box::new(tpcds::HouseholdDemographicsArrow::new(session)),
        "item" => Box::new(tpcds::ItemArrow::new(session)),
        "promotion" => Box::new(tpcds::PromotionArrow::new(session)),
        "store" => Box::new(tpcds::StoreArrow::new(session)),
        "time_dim" => Box::new(tpcds::TimeDimArrow::new(session)),
        _ => unreachable!("{table} is not among the tables"),
    }
}
