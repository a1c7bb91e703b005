//! Tables in memory become Parquet files, so that their scans can be shared.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

/// The maximum number of row groups, since large tables would take too long with one row for each.
const ROW_GROUPS_MAX: usize = 500;

/// The tables of a session that were made in memory. Queries see their files; statements that change tables see memory.
pub(crate) struct Tables {
    context: SessionContext,
    folder: PathBuf,
    group_rows: usize,
    in_memory: HashMap<String, Arc<dyn TableProvider>>,
    written: usize,
}

impl Tables {
    pub(crate) fn new(context: SessionContext, folder: &Path, group_rows: usize) -> Self {
        let folder = folder.to_owned();
        Self { context, folder, group_rows, in_memory: HashMap::new(), written: 0 }
    }

    /// Restores tables in memory that a statement may change.
    pub(crate) fn before(&self, sql: &str) {
        let Some(schema) = self.schema().filter(|_| changes_rows(sql)) else { return };
        let sql = sql.to_lowercase();
        for (name, table) in &self.in_memory {
            if sql.contains(&name.to_lowercase()) && schema.table_exist(name) {
                let _ = schema.deregister_table(name);
                let _ = schema.register_table(name.clone(), Arc::clone(table));
            }
        }
    }

    /// Writes the tables that are in memory to files. Those with types that Parquet lacks stay in memory.
    pub(crate) async fn after(&mut self, sql: &str) {
        let sql = sql.to_lowercase();
        let Some(schema) = self.schema().filter(|_| !sql.trim_start().starts_with("select")) else {
            return;
        };
        for name in schema.table_names() {
            let Ok(Some(table)) = schema.table(&name).await else { continue };
            if !table.is::<MemTable>() || !is_plain(table.as_ref()) {
                continue;
            }
            self.in_memory.insert(name.clone(), Arc::clone(&table));
            if self.write(&schema, &name).await.is_err() {
                let _ = schema.deregister_table(&name);
                let _ = schema.register_table(name, table);
            }
        }
    }

    fn schema(&self) -> Option<Arc<dyn SchemaProvider>> {
        let config = self.context.copied_config();
        let catalog = &config.options().catalog;
        self.context.catalog(&catalog.default_catalog)?.schema(&catalog.default_schema)
    }

    async fn write(&mut self, schema: &Arc<dyn SchemaProvider>, name: &str) -> Result<()> {
        let batches = self.context.table(TableReference::bare(name)).await?.collect().await?;
        let table = schema.table(name).await?.unwrap();
        let rows = concat_batches(&table.schema(), &batches)?;
        self.written += 1;
        let path = self.folder.join(format!("{}.parquet", self.written));
        write(&path, &rows, self.group_rows)?;
        schema.deregister_table(name)?;
        let (name, path) = (name.replace('"', "\"\""), path.display());
        let sql = format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS PARQUET LOCATION '{path}'");
        self.context.sql(&sql).await?.collect().await?;
        Ok(())
    }
}

fn changes_rows(sql: &str) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default().to_lowercase();
    ["insert", "update", "delete", "truncate", "merge", "alter"].contains(&first.as_str())
}

/// Whether files can represent a table completely.
fn is_plain(table: &dyn TableProvider) -> bool {
    let has_constraints = table.constraints().is_some_and(|all| all.iter().next().is_some());
    let fields = table.schema().fields().clone();
    let has_defaults = fields.iter().any(|field| table.get_column_default(field.name()).is_some());
    let names: std::collections::HashSet<_> = fields.iter().map(|field| field.name()).collect();
    !has_constraints && !has_defaults && !fields.is_empty() && names.len() == fields.len()
}

fn write(path: &Path, rows: &RecordBatch, group_rows: usize) -> Result<()> {
    let group_rows = group_rows.max(rows.num_rows() / ROW_GROUPS_MAX);
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows));
    let file = File::create(path)?;
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties.build()))?;
    // The writer recurses for each row group of a batch.
    for start in (0..rows.num_rows()).step_by(group_rows) {
        writer.write(&rows.slice(start, group_rows.min(rows.num_rows() - start)))?;
    }
    writer.close()?;
    Ok(())
}
