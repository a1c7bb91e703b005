//! Tables of Parquet files: the layout of their pages, reading pages, decoding a column of a chunk.
//!
//! A [`FileVersion`] identifies the bytes of a file. A [`ParquetFile`] is one version, opened and shared by all
//! tables that list it. A [`ParquetTable`] is an ordered list of files with one schema.
//!
//! | task | for a file | for a table |
//! |---|---|---|
//! | Open: [`ParquetFile::open`], [`ParquetTable::open`] | `version`, `options`, `opening`, `footer`, `footer_checks`, `metadata_reader`, `file`, `column_types` | `locations`, `snapshot`, `columns` (declared ones) |
//! | One schema for all files | | `schema`, `types` (widening, casts, names) |
//! | Delete, change and insert rows: [`ParquetTable::with_changes`] | | `changes` |
//! | Lay out chunks and pages: [`ParquetTable::layout`] | `chunks`, `pages`, `leaves`, `layout`, `row_ranges` (where rows begin) | `starts`, `table_pages` |
//! | Find the pages of rows: [`ParquetFile::pages_of_rows`] | `page_selection` | `table_pages` |
//! | Read pages: [`ParquetFile::requests`], [`ParquetFile::read`] | `requests`, `read`, `body` (cuts responses) | `table_pages` |
//! | Decode a column of a chunk: [`ParquetFile::decode`] | `decode`, `array_source`, `column_pages`, `segments`, `panics`; `estimate` (memory) | `table_pages` |
//! | Read just the first rows: [`ParquetTable::prefix`] | `prefix` | `first_rows` |
//! | Statistics: [`ParquetFile::statistics`], [`ParquetFile::zone_statistics`] | `statistics`, `bounds`, `zones`, `chunk_statistics`, `distinct` (estimates) | `table_statistics` |
//! | Observations of reads: [`ParquetFile::is_without_nan`], [`ParquetFile::is_unordered`] | `observed` | `table_statistics` |
//! | Bloom filters: [`ParquetFile::read_bloom_filter`] | `bloom_filters` | |
//!
//! Several use `thrift` (Thrift's compact protocol), `per_column` (values made on demand) and `error`.
//!
//! Tables number chunks and pages over all files. They fill in columns that a file lacks, and cast those that it has
//! with another type.
//!
//! Invariants:
//! - files and tables never change: reads of a changed file fail ([`ReadError::Changed`]);
//! - a chunk never spans two files;
//! - a decoder yields exactly the selected rows, or an error.

mod array_source;
mod bloom_filters;
mod body;
mod bounds;
mod changes;
mod chunk_statistics;
mod chunks;
mod column_pages;
mod column_types;
mod columns;
mod decode;
mod distinct;
mod error;
mod estimate;
mod file;
mod first_rows;
mod footer;
mod footer_checks;
mod layout;
mod leaves;
mod locations;
mod metadata_reader;
mod observed;
mod opening;
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
pub use changes::{ChunkChanges, ChunkVersion, ColumnValues, FileChanges, TableChanges, Value};
pub use chunk_statistics::ChunkStatistics;
pub use columns::{ColumnKey, ColumnMapping, ConstantColumn, TableColumns};
pub use decode::ColumnDecoder;
pub use error::{DecodeError, ReadError, TableError};
pub use file::ParquetFile;
pub use locations::LocationError;
pub use metadata_reader::MetadataReader;
pub use options::{ColumnTypes, FileOptions, PageLayout};
pub use prefix::ColumnPrefix;
pub use requests::{PageRequest, put_together};
pub use snapshot::ParquetTable;
pub use types::widens;
pub use version::{FileToOpen, FileVersion, TableFile};
