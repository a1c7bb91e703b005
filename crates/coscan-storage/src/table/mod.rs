//! Tables of Parquet files: where their pages lie, how to read them and how to decode one column of one chunk.
//!
//! A [`FileVersion`] names the bytes of a file. A [`ParquetFile`] is one version, opened: whoever lists it shares it. A
//! [`ParquetTable`] is an ordered list of them with one schema.
//!
//! In call order:
//! - [`ParquetFile::open`] reads a footer (`footer`, `file`) and lays out chunks (`chunks`) and pages (`layout`, `pages`);
//! - [`ParquetTable::of_files`] brings the schemas of files together (`snapshot`, `schema`), [`ParquetTable::open`] opens
//!   them first;
//! - [`ParquetFile::statistics`] says what a chunk may hold without reading it (`statistics`, `bounds`),
//!   [`ParquetFile::zone_statistics`] what its row groups may (`zones`);
//! - [`ParquetFile::read_bloom_filter`] reads what a row group does not hold (`bloom_filters`);
//! - [`ParquetFile::requests`] says how to fetch pages as they are stored, [`ParquetFile::read`] does (`read`, `body`);
//! - [`ParquetFile::pages_of_rows`] says which pages hold some rows (`rows`);
//! - [`ParquetFile::decode`] turns the pages of one column of one chunk into Arrow arrays (`decode`, `column_pages`).
//! - [`ParquetTable::prefix`] reads and decodes just the first rows of a chunk (`prefix`).
//!
//! Tables have all of these too, with chunks and pages counted over all files, and with the columns that a file lacks or
//! has with another type (`table_pages`, `table_statistics`, `types`).
//!
//! Invariants:
//! - files and tables never change: a file that does is reported, never read ([`ReadError::Changed`]);
//! - a chunk never spans two files;
//! - a decoder yields exactly the rows it was asked for, or an error.

mod bloom_filters;
mod body;
mod bounds;
mod chunk_statistics;
mod chunks;
mod column_pages;
mod column_types;
mod columns;
mod decode;
mod error;
mod estimate;
mod file;
mod first_rows;
mod footer;
mod layout;
mod leaves;
mod locations;
mod options;
mod page_selection;
mod pages;
mod panics;
mod per_column;
mod prefix;
mod read;
mod requests;
mod row_ranges;
mod schema;
mod segments;
mod snapshot;
mod starts;
mod statistics;
mod table_pages;
mod table_statistics;
mod thrift;
mod types;
mod version;
mod zones;

pub use bloom_filters::BloomFilter;
pub use chunk_statistics::ChunkStatistics;
pub use columns::{ConstantColumn, TableColumns};
pub use decode::ColumnDecoder;
pub use error::{DecodeError, ReadError, TableError};
pub use file::ParquetFile;
pub use locations::LocationError;
pub use options::{ColumnTypes, FileOptions, PageLayout};
pub use prefix::ColumnPrefix;
pub use requests::{PageRequest, put_together};
pub use snapshot::ParquetTable;
pub use types::widens;
pub use version::{FileToOpen, FileVersion, TableFile};
