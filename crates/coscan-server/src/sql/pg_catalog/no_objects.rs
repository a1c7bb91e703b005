//! Catalog tables that never have rows. This server has no keys, indexes, triggers, policies or extensions, and does
//! not list its statistics, sessions or time zones.

/// Tables of datafusion-pg-catalog, some of which have rows about PostgreSQL itself.
const TABLES: [&str; 46] = [
    "pg_attrdef",
    "pg_auth_members",
    "pg_authid",
    "pg_constraint",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_depend",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_index",
    "pg_inherits",
    "pg_init_privs",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_matviews",
    "pg_partitioned_table",
    "pg_policy",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_range",
    "pg_replication_origin",
    "pg_replication_slots",
    "pg_rewrite",
    "pg_seclabel",
    "pg_sequence",
    "pg_shdepend",
    "pg_shdescription",
    "pg_shseclabel",
    "pg_stat_user_tables",
    "pg_statistic",
    "pg_statistic_ext",
    "pg_statistic_ext_data",
    "pg_subscription",
    "pg_subscription_rel",
    "pg_trigger",
    "pg_ts_config",
    "pg_ts_dict",
    "pg_ts_parser",
    "pg_ts_template",
    "pg_user_mapping",
    "pg_views",
];

/// Tables that datafusion-pg-catalog does not have, with their columns.
const MORE_TABLES: [(&str, &str); 25] = [
    ("pg_available_extensions", "name default_version installed_version comment"),
    ("pg_group", "groname grosysid grolist"),
    ("pg_indexes", "schemaname tablename indexname tablespace indexdef"),
    ("pg_locks", "locktype database relation pid mode granted"),
    ("pg_policies", "schemaname tablename policyname permissive roles cmd qual with_check"),
    ("pg_prepared_xacts", "transaction gid prepared owner database"),
    ("pg_rules", "schemaname tablename rulename definition"),
    ("pg_seclabels", "objoid classoid objsubid objtype objnamespace objname provider label"),
    ("pg_sequences", "schemaname sequencename sequenceowner data_type last_value"),
    ("pg_stat_activity", "datid datname pid usename application_name client_addr state query"),
    ("pg_stat_all_indexes", "relid indexrelid schemaname relname indexrelname idx_scan"),
    ("pg_stat_all_tables", "relid schemaname relname n_live_tup"),
    ("pg_shmem_allocations", "name off size allocated_size"),
    ("pg_stat_database", "datid datname numbackends xact_commit xact_rollback blks_read blks_hit"),
    ("pg_stat_database_conflicts", "datid datname confl_tablespace confl_lock"),
    ("pg_stat_replication", "pid usesysid usename application_name client_addr state"),
    ("pg_stat_ssl", "pid ssl version cipher bits client_dn"),
    ("pg_stat_user_functions", "funcid schemaname funcname calls total_time self_time"),
    ("pg_stat_user_indexes", "relid indexrelid schemaname relname indexrelname idx_scan"),
    ("pg_statio_user_tables", "relid schemaname relname heap_blks_read heap_blks_hit"),
    (
        "pg_stats",
        "schemaname tablename attname inherited null_frac avg_width n_distinct most_common_vals most_common_freqs \
         histogram_bounds correlation",
    ),
    ("pg_timezone_abbrevs", "abbrev utc_offset is_dst"),
    ("pg_timezone_names", "name abbrev utc_offset is_dst"),
    ("pg_transform", "oid trftype trflang trffromsql trftosql"),
    ("pg_user_mappings", "umid srvid srvname umuser usename umoptions"),
];

pub(super) fn has_none(name: &str) -> bool {
    TABLES.contains(&name) || more_tables().any(|table| table == name)
}

pub(super) fn more_tables() -> impl Iterator<Item = &'static str> {
    MORE_TABLES.iter().map(|(name, _)| *name)
}

/// The columns of a table that datafusion-pg-catalog does not have.
pub(super) fn columns_of_more(name: &str) -> Option<&'static str> {
    MORE_TABLES.iter().find(|(table, _)| *table == name).map(|(_, columns)| *columns)
}
