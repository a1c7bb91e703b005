//! Columns that datafusion-pg-catalog leaves out, or has as text where PostgreSQL has arrays. They are NULL here: there
//! are no grants other than those of the users file, and no storage options.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, col, ident, lit};

use crate::engine::CATALOG;

/// The kinds of types that there are: base types and pseudo-types. There are no domains, enumerations or ranges, and rows
/// of tables have no type.
pub(super) const TYPE_KINDS: [&str; 2] = ["b", "p"];

/// Tables, and their columns that are arrays of text.
const TEXTS: [(&str, &[&str]); 10] = [
    ("pg_attribute", &["attacl", "attoptions", "attfdwoptions"]),
    ("pg_class", &["relacl", "reloptions"]),
    // Its name up to version 16.
    ("pg_collation", &["colliculocale"]),
    ("pg_database", &["datacl"]),
    ("pg_language", &["lanacl"]),
    ("pg_namespace", &["nspacl"]),
    ("pg_proc", &["proacl", "proconfig"]),
    ("pg_tablespace", &["spcacl", "spcoptions"]),
    ("pg_type", &["typacl"]),
    ("pg_roles", &["rolconfig"]),
];

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
    let kept = there.filter(|column| !texts.contains(column)).map(ident);
    let added = texts.iter().map(|column| lit(null.clone()).alias(*column));
    let version = lit(ScalarValue::Utf8(None)).alias("datcollversion");
    let added = added.chain((name == "pg_database").then_some(version));
    let plan = plan.project(kept.chain(added))?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// The view of those roles that may log in.
pub(super) const USERS: &str = "pg_user";

/// The view on the table of roles.
pub(super) fn users(roles: Arc<dyn TableProvider>) -> Result<Arc<dyn TableProvider>> {
    let no = || lit(ScalarValue::Utf8(None));
    let columns = [
        ident("rolname").alias("usename"),
        ident("oid").alias("usesysid"),
        ident("rolcreatedb").alias("usecreatedb"),
        ident("rolsuper").alias("usesuper"),
        ident("rolreplication").alias("userepl"),
        ident("rolbypassrls").alias("usebypassrls"),
        lit("********").alias("passwd"),
        no().alias("valuntil"),
        no().alias("useconfig"),
    ];
    let plan = LogicalPlanBuilder::scan("pg_roles", provider_as_source(roles), None)?;
    let plan = plan.filter(ident("rolcanlogin"))?.project(columns)?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}
