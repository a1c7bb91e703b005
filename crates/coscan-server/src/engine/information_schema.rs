//! `information_schema`: that of DataFusion, with the types, columns and tables that clients of PostgreSQL read.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{CatalogProviderList, MemTable, SchemaProvider, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlanBuilder, ScalarUDF, Volatility, create_udf, ident, lit,
};

use crate::engine::CATALOG;

/// The name of the schema.
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";

/// Tables about keys, constraints and the like, of which there are none.
const NO_ROWS: [(&str, &[&str]); 6] = [
    (
        "constraint_column_usage",
        &["table_schema", "table_name", "column_name", "constraint_schema", "constraint_name"],
    ),
    (
        "key_column_usage",
        &[
            "constraint_schema",
            "constraint_name",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
        ],
    ),
    (
        "referential_constraints",
        &[
            "constraint_schema",
            "constraint_name",
            "unique_constraint_schema",
            "unique_constraint_name",
        ],
    ),
    ("sequences", &["sequence_schema", "sequence_name", "data_type"]),
    (
        "table_constraints",
        &["constraint_schema", "constraint_name", "table_schema", "table_name", "constraint_type"],
    ),
    ("triggers", &["trigger_schema", "trigger_name", "event_object_table"]),
];

/// The schema of one user.
#[derive(Debug)]
pub(super) struct InformationSchema(InformationSchemaProvider);

impl InformationSchema {
    /// About these catalogs.
    pub(super) fn new(catalogs: Arc<dyn CatalogProviderList>) -> Self {
        Self(InformationSchemaProvider::new(catalogs))
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let more = NO_ROWS.iter().map(|(name, _)| (*name).to_owned());
        self.0.table_names().into_iter().chain(more).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some((_, columns)) = NO_ROWS.iter().find(|(table, _)| *table == name) {
            let fields = columns.iter().map(|column| Field::new(*column, DataType::Utf8, true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            return Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![]])?)));
        }
        match self.0.table(name).await? {
            Some(table) if name == "columns" => complete_columns(table).map(Some),
            table => Ok(table),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name) || NO_ROWS.iter().any(|(table, _)| *table == name)
    }
}

/// The table of columns with types of SQL in place of those of Arrow.
fn complete_columns(table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let schema = table.schema();
    let there = schema.fields().iter().map(|field| match field.name().as_str() {
        "data_type" => {
            renamed("sql_type", |name| name).call(vec![ident("data_type")]).alias("data_type")
        }
        name => ident(name),
    });
    let text = |text: &str| lit(ScalarValue::from(text));
    let added = [
        text(CATALOG).alias("udt_catalog"),
        text("pg_catalog").alias("udt_schema"),
        renamed("sql_type_name", short_name).call(vec![ident("data_type")]).alias("udt_name"),
        text("NO").alias("is_identity"),
        text("NEVER").alias("is_generated"),
        text("NO").alias("is_updatable"),
        lit(ScalarValue::Utf8(None)).alias("identity_generation"),
        lit(ScalarValue::Utf8(None)).alias("collation_name"),
        lit(ScalarValue::Utf8(None)).alias("domain_name"),
    ];
    let plan = LogicalPlanBuilder::scan("columns", provider_as_source(Arc::clone(&table)), None)?;
    let plan = plan.project(there.chain(added))?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// A function from types of Arrow to names of types in SQL.
fn renamed(name: &str, form: fn(&str) -> &str) -> ScalarUDF {
    let call = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let types = arrays[0].as_string::<i32>().iter();
        let names = types.map(|of| of.map(|of| named(of, form)));
        Ok(ColumnarValue::Array(Arc::new(names.collect::<StringArray>()) as ArrayRef))
    };
    create_udf(name, vec![DataType::Utf8], DataType::Utf8, Volatility::Immutable, Arc::new(call))
}

/// The name of a type, from the one that Arrow displays.
fn named(arrow: &str, form: fn(&str) -> &str) -> String {
    let inner = |arrow: &'static str| form(arrow).to_owned();
    let end = arrow.find('(').unwrap_or(arrow.len());
    match &arrow[..end] {
        "Boolean" => inner("boolean"),
        "Int8" | "Int16" | "UInt8" => inner("smallint"),
        "Int32" | "UInt16" => inner("integer"),
        "Int64" | "UInt32" => inner("bigint"),
        "UInt64" | "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => inner("numeric"),
        "Float16" | "Float32" => inner("real"),
        "Float64" => inner("double precision"),
        "Binary" | "LargeBinary" | "BinaryView" | "FixedSizeBinary" => inner("bytea"),
        "Date32" | "Date64" => inner("date"),
        "Time32" | "Time64" => inner("time without time zone"),
        "Timestamp" if arrow.contains('"') => inner("timestamp with time zone"),
        "Timestamp" => inner("timestamp without time zone"),
        "Interval" | "Duration" => inner("interval"),
        "List" | "LargeList" | "FixedSizeList" | "ListView" | "LargeListView" => "ARRAY".to_owned(),
        "Dictionary" => {
            let value = arrow.rsplit(", ").next().unwrap_or_default().trim_end_matches(')');
            named(value, form)
        }
        _ => inner("text"),
    }
}

/// The name that PostgreSQL has for a type itself.
fn short_name(name: &str) -> &str {
    match name {
        "boolean" => "bool",
        "smallint" => "int2",
        "integer" => "int4",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" => "float8",
        "time without time zone" => "time",
        "timestamp with time zone" => "timestamptz",
        "timestamp without time zone" => "timestamp",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_arrow_have_names_in_sql() {
        for (arrow, name, short) in [
            (DataType::Int64, "bigint", "int8"),
            (DataType::Utf8View, "text", "text"),
            (DataType::Decimal128(15, 2), "numeric", "numeric"),
            (
                DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into())),
                "timestamp with time zone",
                "timestamptz",
            ),
            (
                DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None),
                "timestamp without time zone",
                "timestamp",
            ),
            (
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
                "text",
                "text",
            ),
            (DataType::new_list(DataType::Int32, true), "ARRAY", "ARRAY"),
        ] {
            let arrow = arrow.to_string();
            assert_eq!(named(&arrow, |name| name), name, "{arrow}");
            assert_eq!(named(&arrow, short_name), short, "{arrow}");
        }
    }
}
