//! Tables that datafusion-pg-catalog does not have.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlanBuilder, ident, lit};

use super::no_objects;

/// Whether a table is one of the added ones.
pub(super) fn is_added(name: &str) -> bool {
    added_tables().any(|table| table == name)
}

/// The names of the added tables.
pub(super) fn added_tables() -> impl Iterator<Item = &'static str> {
    no_objects::more_tables().chain([USERS])
}

/// The view of the roles that may log in.
pub(super) const USERS: &str = "pg_user";

/// Creates the view on the table of roles.
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
