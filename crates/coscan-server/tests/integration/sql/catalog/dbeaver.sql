-- # the form of what DBeaver sends; not recorded
-- where am I: 1 rows of 2 columns
SELECT current_schema(), session_user
;
-- version: 1 rows of 1 columns
SELECT version()
;
-- keywords: 1 rows of 1 columns
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,all}'::text[])
;
-- a setting: 1 rows of 17 columns
SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings'
;
-- databases: 1 rows of 19 columns
SELECT db.oid, db.* FROM pg_catalog.pg_database db
WHERE db.datallowconn AND NOT db.datistemplate OR db.datname = 'coscan' ORDER BY db.datname
;
-- schemas: 3 rows of 7 columns
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d
    ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
ORDER BY n.nspname
;
-- types: answers
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')
    AND (et.typcategory IS NULL OR et.typcategory <> 'C')
;
-- tables of a schema: 1 rows of 37 columns
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
    pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d
    ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'public')
    AND c.relkind NOT IN ('i', 'I', 'c')
;
-- columns of a table: 2 rows of 30 columns
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum
    AND dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'c') AND c.oid = 'numbers'::regclass
ORDER BY a.attnum
;
-- constraints: 0 rows of 31 columns
SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description,
    CASE WHEN c.contype = 'c' THEN substring(pg_get_constraintdef(c.oid), 7) ELSE NULL END AS consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0
WHERE c.conrelid = 'numbers'::regclass ORDER BY c.oid
;
-- indexes: 0 rows of 31 columns
SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname AS tabrelname,
    dsc.description, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr,
    pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr, pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
WHERE i.indrelid = 'numbers'::regclass ORDER BY tabrelname, c.relname
;
-- sizes: 1 rows of 3 columns
SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size, pg_catalog.pg_relation_size(c.oid) AS rel_size
FROM pg_class c WHERE c.relname = 'numbers'
;
-- roles: 1 rows of 15 columns
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a
LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname
;
-- members of roles: 0 rows of 3 columns
SELECT m.roleid, m.member, m.admin_option FROM pg_catalog.pg_auth_members m WHERE m.member = 10
;
-- extensions: 0 rows of 5 columns
SELECT e.oid, e.extname, e.extversion, n.nspname AS schema_name, pg_catalog.array_to_string(e.extconfig, ',') AS tables
FROM pg_catalog.pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace ORDER BY e.extname
;
-- tablespaces: 2 rows of 3 columns
SELECT t.oid, t.spcname, pg_tablespace_location(t.oid) AS loc FROM pg_catalog.pg_tablespace t ORDER BY t.oid
;
-- functions of a schema: 0 rows of 3 columns
SELECT p.oid, p.proname, d.description FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = p.oid
WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'public') ORDER BY p.proname
;
-- sequences: 0 rows of 2 columns
SELECT s.seqrelid, s.seqstart FROM pg_catalog.pg_sequence s WHERE s.seqrelid = 'numbers'::regclass
;
-- triggers: 0 rows of 3 columns
SELECT t.tgname, p.pronamespace AS func_schema_id, pg_get_triggerdef(t.oid) AS definition
FROM pg_catalog.pg_trigger t, pg_catalog.pg_proc p WHERE t.tgrelid = 16384 AND p.oid = t.tgfoid
;
-- policies: 0 rows of 2 columns
SELECT pol.policyname, pol.cmd FROM pg_catalog.pg_policies pol WHERE pol.schemaname = 'public'
;
-- partitions: 0 rows of 2 columns
SELECT i.inhseqno, c.relname FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c
WHERE i.inhparent = 'numbers'::regclass AND c.oid = i.inhrelid
;
