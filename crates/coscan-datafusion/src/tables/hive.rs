//! Hive partitioning: `year=2024/month=1/a.parquet` has the columns `year` and `month`, whose values are the names of
//! directories.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::datasource::listing::helpers::parse_partitions_for_path;
use datafusion::error::Result;
use log::debug;

use crate::tables::location::ListedFile;
use crate::tables::snapshot_source::{SnapshotFile, value_type};

/// The number of files from which columns are inferred, as in the engine's own tables.
const FILES_SAMPLED: usize = 10;

/// Infers the columns from the names of directories.
///
/// # Errors
/// If files are in directories with different names.
pub(crate) fn infer(files: &[ListedFile]) -> Result<Vec<FieldRef>> {
    let names = |file: &ListedFile| -> Vec<String> {
        let mut parts: Vec<_> =
            file.location.strip_prefix(&file.file.meta.location).into_iter().flatten().collect();
        parts.pop();
        let names = parts.into_iter().filter_map(|directory| directory.split_once('='));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let mut sampled = files.iter().take(FILES_SAMPLED);
    let Some(first) = sampled.next() else { return Ok(Vec::new()) };
    let inferred = names(first);
    if let Some(other) = sampled.find(|file| names(file) != inferred) {
        return plan_err!(
            "{} and {} are in directories that name different columns ({} and {}); name the columns with \
             PARTITIONED BY, or move one of the files",
            first.file.name(),
            other.file.name(),
            list(&inferred),
            list(&names(other))
        );
    }
    let field = |name: String| Arc::new(Field::new(name, usual_type(), false));
    Ok(inferred.into_iter().map(field).collect())
}

/// The type of such a column if none is declared, which is a dictionary of strings.
pub(crate) fn usual_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8))
}

/// Checks a declaration against the names of directories. It may leave columns out.
///
/// # Errors
/// If it names other columns.
pub(crate) fn check(declared: &[FieldRef], files: &[ListedFile]) -> Result<()> {
    let inferred = infer(files)?;
    let agrees = inferred.is_empty()
        || inferred.len() >= declared.len()
            && inferred.iter().zip(declared).all(|(a, b)| a.name() == b.name());
    if agrees {
        return Ok(());
    }
    let names = |fields: &[FieldRef]| {
        list(&fields.iter().map(|field| field.name().clone()).collect::<Vec<_>>())
    };
    plan_err!(
        "PARTITIONED BY names {}, but the directories of the table name {}; use those names",
        names(declared),
        names(&inferred)
    )
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The files that are in directories of these columns, with the values of the columns. Others are left out.
///
/// # Errors
/// If all are left out, or the name of a directory is not a value of the column's type.
pub(crate) fn with_values(
    partitions: &[FieldRef],
    files: Vec<ListedFile>,
) -> Result<Vec<SnapshotFile>> {
    let is_empty = files.is_empty();
    let mut snapshot = Vec::with_capacity(files.len());
    for listed in files {
        let Some(texts) = texts(partitions, &listed) else {
            debug!("{} is in no partition and is left out", listed.file.name());
            continue;
        };
        let value = |(field, text): (&FieldRef, String)| value(field, text, &listed);
        let partition_values = partitions.iter().zip(texts).map(value).collect::<Result<_>>()?;
        snapshot.push(SnapshotFile { partition_values, ..listed.file.into() });
    }
    if snapshot.is_empty() && !is_empty {
        let names: Vec<_> = partitions.iter().map(|field| field.name().clone()).collect();
        return plan_err!(
            "no file is in directories named {}=…; name other columns in PARTITIONED BY, or a directory above those as \
             the location",
            names.join("=…/")
        );
    }
    Ok(snapshot)
}

/// Whether a file is in directories of these columns.
pub(crate) fn is_in(partitions: &[FieldRef], file: &ListedFile) -> bool {
    texts(partitions, file).is_some()
}

/// The values of these columns in the path of a file, `None` if it is not in such directories.
fn texts(partitions: &[FieldRef], file: &ListedFile) -> Option<Vec<String>> {
    let names = partitions.iter().map(|field| field.name().as_str());
    let found = parse_partitions_for_path(&file.location, &file.file.meta.location, names)?;
    let is_complete = found.len() == partitions.len();
    is_complete.then(|| found.into_iter().map(Cow::into_owned).collect())
}

fn value(field: &FieldRef, text: String, listed: &ListedFile) -> Result<ScalarValue> {
    let data_type = value_type(field);
    ScalarValue::try_from_string(text, data_type).map_err(|error| {
        let (file, name) = (listed.file.name(), field.name());
        plan_datafusion_err!(
            "the directory {name}=… of {file} is not a value of type {data_type}: {error}; rename it, or give {name} \
             another type in PARTITIONED BY"
        )
    })
}
