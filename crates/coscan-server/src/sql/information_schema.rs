//! `information_schema` of DataFusion, with the types, columns and tables that clients of PostgreSQL read.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{CatalogProviderList, MemTable, SchemaProvider, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlanBuilder, ScalarUDF, Volatility, create_udf, ident, lit,
};

use crate::sql::CATALOG;
use crate::sql::empty_tables::{columns_of_empty, empty_names, empty_table};

/// The name of the schema.
pub(super) const INFORMATION_SCHEMA: &str = "information_schema";

const CHARACTER_SETS: &str = "character_sets";

/// Columns that DataFusion leaves out of `columns`. They are NULL for everything in this server.
const NO_VALUE: [&str; 21] = [
    "identity_generation",
    "identity_start",
    "identity_increment",
    "identity_maximum",
    "identity_minimum",
    "generation_expression",
    "collation_catalog",
    "collation_schema",
    "collation_name",
    "domain_catalog",
    "domain_schema",
    "domain_name",
    "character_set_catalog",
    "character_set_schema",
    "character_set_name",
    "interval_type",
    "interval_precision",
    "scope_catalog",
    "scope_schema",
    "scope_name",
    "maximum_cardinality",
];

/// The schema of one user.
#[derive(Debug)]
pub(super) struct InformationSchema(InformationSchemaProvider);

impl InformationSchema {
    /// Creates the schema of these catalogs.
    pub(super) fn new(catalogs: Arc<dyn CatalogProviderList>) -> Self {
        Self(InformationSchemaProvider::new(catalogs))
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let more = empty_names().chain([CHARACTER_SETS]);
        self.0.table_names().into_iter().chain(more.map(str::to_owned)).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(columns) = columns_of_empty(name) {
            return empty_table(columns).map(Some);
        }
        if name == CHARACTER_SETS {
            return character_sets().map(Some);
        }
        match self.0.table(name).await? {
            Some(table) if name == "columns" => complete_columns(table).map(Some),
            Some(table) if name == "views" => views(table).map(Some),
            table => Ok(table),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name) || name == CHARACTER_SETS || columns_of_empty(name).is_some()
    }
}

/// Replaces the types of Arrow in the table of columns by those of SQL.
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
        text("NO").alias("identity_cycle"),
        text("NO").alias("is_self_referencing"),
        ident("ordinal_position").alias("dtd_identifier"),
    ];
    let missing = NO_VALUE.iter().filter(|name| schema.index_of(name).is_err());
    let missing = missing.map(|name| lit(ScalarValue::Utf8(None)).alias(*name));
    let plan = LogicalPlanBuilder::scan("columns", provider_as_source(Arc::clone(&table)), None)?;
    let plan = plan.project(there.chain(added).chain(missing))?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// The table of views, which are those of the system. The tables of users are not listed.
fn views(table: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let schema = table.schema();
    let there = schema.fields().iter().map(|field| ident(field.name()));
    let definition = ident("definition").alias("view_definition");
    let no = ["is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable"];
    let no = no.map(|name| lit("NO").alias(name));
    let plan = LogicalPlanBuilder::scan("views", provider_as_source(Arc::clone(&table)), None)?;
    let plan = plan.filter(ident("table_schema").eq(lit("system")))?;
    let plan = plan
        .project(there.chain([definition, lit("NONE").alias("check_option")]).chain(no))?
        .build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// The table of character sets, of which there is one.
fn character_sets() -> Result<Arc<dyn TableProvider>> {
    let columns = [
        ("character_set_catalog", None),
        ("character_set_schema", None),
        ("character_set_name", Some("UTF8")),
        ("character_repertoire", Some("UCS")),
        ("form_of_use", Some("UTF8")),
        ("default_collate_catalog", Some(CATALOG)),
        ("default_collate_schema", Some("pg_catalog")),
        ("default_collate_name", Some("C")),
    ];
    let values = columns
        .map(|(name, value)| (name, Arc::new(StringArray::from(vec![value])) as ArrayRef, true));
    let batch = RecordBatch::try_from_iter_with_nullable(values)?;
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
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

/// The name of a type in SQL. Lists have brackets.
pub(super) fn sql_name(of: &DataType) -> String {
    match of {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            sql_name(field.data_type()) + "[]"
        }
        of => named(&of.to_string(), |name| name),
    }
}

/// The name of a type, computed from the name that Arrow displays.
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

/// The name that PostgreSQL itself uses for a type.
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
