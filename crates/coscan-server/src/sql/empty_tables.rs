//! Catalog tables that never have rows. There are no keys, constraints or domains, and privileges are not listed.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::error::Result;

/// Tables of `information_schema`, and their columns.
const INFORMATION: [(&str, &str); 15] = [
    ("check_constraints", "constraint_catalog constraint_schema constraint_name check_clause"),
    (
        "column_privileges",
        "grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable",
    ),
    (
        "constraint_column_usage",
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name",
    ),
    (
        "constraint_table_usage",
        "table_catalog table_schema table_name constraint_catalog constraint_schema constraint_name",
    ),
    (
        "domains",
        "domain_catalog domain_schema domain_name data_type domain_default udt_schema udt_name",
    ),
    (
        "element_types",
        "object_catalog object_schema object_name object_type collection_type_identifier data_type udt_schema udt_name",
    ),
    (
        "key_column_usage",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name \
         ordinal_position position_in_unique_constraint",
    ),
    (
        "referential_constraints",
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema \
         unique_constraint_name match_option update_rule delete_rule",
    ),
    (
        "role_table_grants",
        "grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy",
    ),
    ("sequences", "sequence_catalog sequence_schema sequence_name data_type start_value increment"),
    (
        "table_constraints",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type \
         is_deferrable initially_deferred enforced nulls_distinct",
    ),
    (
        "table_privileges",
        "grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy",
    ),
    (
        "triggers",
        "trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog event_object_schema \
         event_object_table action_statement action_timing",
    ),
    (
        "user_defined_types",
        "user_defined_type_catalog user_defined_type_schema user_defined_type_name",
    ),
    (
        "view_table_usage",
        "view_catalog view_schema view_name table_catalog table_schema table_name",
    ),
];

/// A table without rows. `columns` has names of text columns, separated by spaces.
pub(super) fn empty_table(columns: &str) -> Result<Arc<dyn TableProvider>> {
    let fields = columns.split_whitespace().map(|name| Field::new(name, DataType::Utf8, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    Ok(Arc::new(MemTable::try_new(schema, vec![vec![]])?))
}

/// The names of the empty tables of `information_schema`.
pub(super) fn empty_names() -> impl Iterator<Item = &'static str> {
    INFORMATION.iter().map(|(name, _)| *name)
}

/// The columns of an empty table of `information_schema`.
pub(super) fn columns_of_empty(name: &str) -> Option<&'static str> {
    INFORMATION.iter().find(|(table, _)| *table == name).map(|(_, columns)| *columns)
}
