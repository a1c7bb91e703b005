-- # knex 3.3.0 and kysely 0.28.19 on pg 8.23.1, recorded by running
-- connect: 1 rows of 1 columns
select version();
;
-- connect (2): 0 rows of 0 columns
set search_path to "public"
;
-- columnInfo numbers: 2 rows of 44 columns
select * from information_schema.columns where table_name = 'numbers' and table_catalog = current_database() and table_schema = current_schema()
;
-- columnInfo withSchema numbers: 2 rows of 44 columns
select * from information_schema.columns where table_name = 'numbers' and table_catalog = current_database() and table_schema = 'public'
;
-- hasTable numbers: answers
select * from information_schema.tables where table_name = 'numbers' and table_schema = current_schema()
;
-- hasColumn numbers: 1 rows of 44 columns
select * from information_schema.columns where table_name = 'numbers' and column_name = 'id' and table_schema = current_schema()
;
-- hasTable schema numbers: answers
select * from information_schema.tables where table_name = 'numbers' and table_schema = 'public'
;
-- kysely getSchemas: answers
select "nspname" from "pg_catalog"."pg_namespace"
;
-- kysely getTables: answers
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ('r', 'v', 'p') and "ns"."nspname" !~ '^pg_' and "ns"."nspname" != 'information_schema' and "ns"."nspname" != 'crdb_internal' and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= '0' and "a"."attisdropped" != 't' and "c"."relname" != 'kysely_migration' and "c"."relname" != 'kysely_migration_lock' order by "ns"."nspname", "c"."relname", "a"."attnum"
;
-- kysely getTables internal: answers
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ('r', 'v', 'p') and "ns"."nspname" !~ '^pg_' and "ns"."nspname" != 'information_schema' and "ns"."nspname" != 'crdb_internal' and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= '0' and "a"."attisdropped" != 't' order by "ns"."nspname", "c"."relname", "a"."attnum"
;
