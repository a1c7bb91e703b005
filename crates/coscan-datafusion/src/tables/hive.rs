//! Columns that are the names of directories: `year=2024/month=1/a.parquet` has the columns `year` and `month`.

use std::borrow::Cow;
use std::sync::Arc;

use coscan_storage::table::{ConstantColumn, TableColumns, TableFile};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion::common::{ScalarValue, plan_datafusion_err, plan_err};
use datafusion::datasource::listing::helpers::parse_partitions_for_path;
use datafusion::error::Result;
use log::debug;

use crate::tables::location::ListedFile;

/// So many files say what the columns are, as in the engine's own tables.
const FILES_ASKED: usize = 10;

/// The columns that the names of directories say there are.
///
/// # Errors
/// If files lie in directories with different names.
pub(crate) fn infer(files: &[ListedFile]) -> Result<Vec<FieldRef>> {
    let names = |file: &ListedFile| -> Vec<String> {
        let mut parts: Vec<_> =
            file.location.strip_prefix(&file.file.meta.location).into_iter().flatten().collect();
        parts.pop();
        let names = parts.into_iter().filter_map(|directory| directory.split_once('='));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let mut asked = files.iter().take(FILES_ASKED);
    let Some(first) = asked.next() else { return Ok(Vec::new()) };
    let inferred = names(first);
    if let Some(other) = asked.find(|file| names(file) != inferred) {
        return plan_err!(
            "{} and {} lie in directories that make different columns ({} and {}); name the columns with PARTITIONED BY, \
             or move one of the files",
            first.file.name(),
            other.file.name(),
            list(&inferred),
            list(&names(other))
        );
    }
    let field = |name: String| Arc::new(Field::new(name, usual_type(), false));
    Ok(inferred.into_iter().map(field).collect())
}

/// The type of such a column if none is declared: texts that repeat.
pub(crate) fn usual_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8))
}

/// Whether the directories say the same as a declaration, which may name fewer columns.
///
/// # Errors
/// If they do not.
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
        "PARTITIONED BY names {}, but the directories of the table are {}; name those",
        names(declared),
        names(&inferred)
    )
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The files of a table, and its columns.
pub(crate) struct TableListing {
    pub(crate) files: Vec<TableFile>,
    pub(crate) columns: TableColumns,
}

impl TableListing {
    /// Those of the files that lie in directories of these columns. `declared` is what is read of the files, all they
    /// have if it is not said.
    ///
    /// # Errors
    /// If the name of a directory is no value of the column's type.
    pub(crate) fn new(
        files: Vec<ListedFile>,
        partitions: &[FieldRef],
        declared: Option<SchemaRef>,
    ) -> Result<Self> {
        let is_empty = files.is_empty();
        let (files, constants) = constants(partitions, files)?;
        if files.is_empty() && !is_empty {
            let names: Vec<_> = partitions.iter().map(|field| field.name().clone()).collect();
            return plan_err!(
                "no file lies in directories named {}=…; name other columns in PARTITIONED BY, or a directory above \
                 those as the location",
                names.join("=…/")
            );
        }
        let files = files.into_iter().map(|listed| listed.file).collect();
        Ok(Self { files, columns: TableColumns { declared, constants } })
    }
}

/// The files that lie in directories of these columns, and the values of the columns.
fn constants(
    fields: &[FieldRef],
    files: Vec<ListedFile>,
) -> Result<(Vec<ListedFile>, Vec<ConstantColumn>)> {
    let texts = |file: &ListedFile| -> Option<Vec<String>> {
        let names = fields.iter().map(|field| field.name().as_str());
        let found = parse_partitions_for_path(&file.location, &file.file.meta.location, names);
        let found = found.filter(|found| found.len() == fields.len());
        if found.is_none() {
            debug!("{} lies in no partition and is left out", file.file.name());
        }
        Some(found?.into_iter().map(Cow::into_owned).collect())
    };
    let (files, texts): (Vec<_>, Vec<_>) =
        files.into_iter().filter_map(|file| texts(&file).map(|texts| (file, texts))).unzip();
    let mut constants = Vec::with_capacity(fields.len());
    for (position, field) in fields.iter().enumerate() {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, value) => value,
            data_type => data_type,
        };
        let value = |(file, texts): (&ListedFile, &Vec<String>)| {
            let text = texts[position].clone();
            ScalarValue::try_from_string(text, data_type).map_err(|error| {
                let (file, name) = (file.file.name(), field.name());
                plan_datafusion_err!(
                    "the directory {name}=… of {file} is no {data_type}: {error}; rename it, or give {name} another type \
                     in PARTITIONED BY"
                )
            })
        };
        let values = files.iter().zip(&texts).map(value).collect::<Result<Vec<_>>>()?;
        if !values.is_empty() {
            let values = ScalarValue::iter_to_array(values)?;
            constants.push(ConstantColumn { field: Arc::clone(field), values });
        }
    }
    Ok((files, constants))
}
