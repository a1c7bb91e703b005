//! One schema for all files of a table.
//!
//! Columns are found by name, or as a [`ColumnMapping`] says. A file may lack some (they are NULL there), have them in
//! another order, or with a type that another file's type can hold. Nullability may differ, at any depth: a field that
//! is nullable or missing in one file is nullable in the table. Metadata at the top level is dropped and nested metadata
//! taken from the first file, as DataFusion does with its defaults (`skip_metadata`, `schema_force_view_types`).

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{Field, Fields};

use super::types::{can_adapt, common_type};
use super::{ColumnKey, ColumnMapping, ParquetFile, TableError};

/// The columns of all files, in the order in which they first appear.
pub(super) fn merge_fields(files: &[Arc<ParquetFile>]) -> Result<Vec<Field>, TableError> {
    let mut merged: Vec<Merged<'_>> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (index, file) in files.iter().enumerate() {
        if index > 0 && files[index - 1].fields() == file.fields() {
            for field in file.fields() {
                merged[positions[field.name().as_str()]].file_count += 1;
            }
            continue;
        }
        for field in file.fields() {
            match positions.get(field.name().as_str()) {
                Some(&position) => merged[position].merge(field, file)?,
                None => {
                    positions.insert(field.name(), merged.len());
                    let field = field.as_ref().clone().with_metadata(HashMap::default());
                    merged.push(Merged { field, file_count: 1, origin: file });
                }
            }
        }
    }
    let finish = |merged: Merged<'_>| {
        let is_nullable = merged.field.is_nullable() || merged.file_count < files.len();
        merged.field.with_nullable(is_nullable)
    };
    Ok(merged.into_iter().map(finish).collect())
}

/// A column of some files.
struct Merged<'a> {
    field: Field,
    /// The number of files that have it.
    file_count: usize,
    /// The last file that widened the type.
    origin: &'a ParquetFile,
}

impl<'a> Merged<'a> {
    fn merge(&mut self, field: &'a Field, file: &'a ParquetFile) -> Result<(), TableError> {
        let (merged_type, other) = (self.field.data_type(), field.data_type());
        let Some(data_type) = common_type(merged_type, other) else {
            return Err(TableError::SchemaMismatch {
                first_file: Arc::clone(&self.origin.name),
                second_file: Arc::clone(&file.name),
                column: field.name().clone(),
                first_type: merged_type.to_string(),
                second_type: other.to_string(),
            });
        };
        if data_type != *merged_type {
            self.origin = file;
        }
        self.file_count += 1;
        let is_nullable = self.field.is_nullable() || field.is_nullable();
        self.field = self.field.clone().with_data_type(data_type).with_nullable(is_nullable);
        Ok(())
    }
}

/// The places of these columns in each file, `None` for those that it lacks. `mapping` has the columns as files name
/// them. Neighbours with the same columns share a list.
///
/// # Errors
/// If a file cannot be read as these columns.
pub(super) fn columns_of_files(
    columns: &Fields,
    mapping: Option<&ColumnMapping>,
    files: &[Arc<ParquetFile>],
) -> Result<Vec<Arc<[Option<usize>]>>, TableError> {
    let mut places: Vec<Arc<[Option<usize>]>> = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let is_same = |before: &ParquetFile| match mapping.map(|mapping| &mapping.key) {
            Some(ColumnKey::FieldId(_)) => false,
            _ => before.fields() == file.fields(),
        };
        let same = places.last().filter(|_| is_same(&files[index - 1]));
        places.push(match same {
            Some(same) => Arc::clone(same),
            None => columns_of_file(columns, mapping, file)?,
        });
    }
    Ok(places)
}

fn columns_of_file(
    columns: &Fields,
    mapping: Option<&ColumnMapping>,
    file: &ParquetFile,
) -> Result<Arc<[Option<usize>]>, TableError> {
    let places = match mapping {
        Some(mapping) => mapping.places_in(file),
        None => {
            let fields = file.fields().iter().enumerate();
            let positions: HashMap<_, _> =
                fields.map(|(position, field)| (field.name(), position)).collect();
            columns.iter().map(|column| positions.get(column.name()).copied()).collect()
        }
    };
    let stored = mapping.map_or(columns, |mapping| &mapping.fields);
    for ((column, stored), place) in columns.iter().zip(stored).zip(&places) {
        let (file_name, name) = (|| Arc::clone(&file.name), || column.name().clone());
        match place.map(|place| file.fields()[place].data_type()) {
            None if !column.is_nullable() => {
                return Err(TableError::MissingColumn { file: file_name(), column: name() });
            }
            Some(file_type) if !can_adapt(file_type, stored.data_type()) => {
                return Err(TableError::CannotCast {
                    file: file_name(),
                    column: name(),
                    file_type: file_type.to_string(),
                    table_type: column.data_type().to_string(),
                });
            }
            _ => {}
        }
    }
    Ok(places.into())
}

/// A name that several columns share. Columns are found by name, so there must be none.
pub(super) fn repeated_name(fields: &Fields) -> Option<&str> {
    let mut names = HashSet::new();
    fields.iter().map(|field| field.name().as_str()).find(|&name| !names.insert(name))
}
