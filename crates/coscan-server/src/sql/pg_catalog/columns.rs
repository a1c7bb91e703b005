//! Columns that datafusion-pg-catalog leaves out, or has as text where PostgreSQL has arrays. They are NULL here, since
//! there are no grants other than those of the users file, and no storage options. This module also sets the collation
//! of texts.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, col, ident, lit, when};

use crate::sql::CATALOG;

/// The kinds of types that exist here: base types and pseudo-types. There are no domains, enumerations or ranges, and
/// rows of tables have no type.
pub(super) const TYPE_KINDS: [&str; 2] = ["b", "p"];

/// Tables with their columns that are arrays of text.
const TEXTS: [(&str, &[&str]); 10] = [
    ("pg_attribute", &["attacl", "attoptions", "attfdwoptions"]),
    ("pg_class", &["relacl", "reloptions"]),
    // The name of the column up to version 16.
    ("pg_collation", &["colliculocale"]),
    ("pg_database", &["datacl"]),
    ("pg_language", &["lanacl"]),
    ("pg_namespace", &["nspacl"]),
    ("pg_proc", &["proacl", "proconfig"]),
    ("pg_tablespace", &["spcacl", "spcoptions"]),
    ("pg_type", &["typacl"]),
    ("pg_roles", &["rolconfig"]),
];

/// The numbers of the types that have a collation: `name`, `text`, `varchar`, `bpchar`, and lists of text.
const TEXT_TYPES: [i32; 5] = [19, 25, 1009, 1042, 1043];

/// The number of the collation `C`. Texts are compared by their bytes, and clients that sort them elsewhere must do the
/// same.
const COLLATION_C: i32 = 950;

/// Whether a column contains texts.
fn is_text() -> Expr {
    ident("atttypid").in_list(TEXT_TYPES.map(lit).to_vec(), false)
}

/// The collation of columns and types that have one.
fn collation(has_one: Expr) -> Expr {
    let value = when(has_one, lit(COLLATION_C)).otherwise(lit(0_i32));
    value.unwrap_or_else(|_| lit(0_i32))
}

/// The table with all of its columns, and without databases and types that this server does not have.
pub(super) fn complete(
    name: &str,
    table: Arc<dyn TableProvider>,
) -> Result<Arc<dyn TableProvider>> {
    let Some((_, texts)) = TEXTS.iter().find(|(table, _)| *table == name) else { return Ok(table) };
    let schema = table.schema();
    let plan = LogicalPlanBuilder::scan(name, provider_as_source(table), None)?;
    let plan = match name {
        "pg_database" => plan.filter(col("datname").eq(lit(CATALOG)))?,
        "pg_type" => plan.filter(col("typtype").in_list(TYPE_KINDS.map(lit).to_vec(), false))?,
        _ => plan,
    };
    let texts_type = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let null = ScalarValue::try_from(&texts_type)?;
    let there = schema.fields().iter().map(|field| field.name().as_str());
    let kept = there.filter(|column| !texts.contains(column)).map(|column| match column {
        "attcollation" => collation(is_text()).alias(column),
        // Clients take the collation of a column for a choice of its user if it differs from that
        // of the type.
        "typcollation" => collation(ident(column).not_eq(lit(0_i32))).alias(column),
        column => ident(column),
    });
    let added = texts.iter().map(|column| lit(null.clone()).alias(*column));
    let version = lit(ScalarValue::Utf8(None)).alias("datcollversion");
    let added = added.chain((name == "pg_database").then_some(version));
    let plan = plan.project(kept.chain(added))?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}
