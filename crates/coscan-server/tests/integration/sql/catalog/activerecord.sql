-- # Ruby on Rails ActiveRecord 6.1.7.10 with pg 1.4.5 (Debian), recorded by running
-- connect: 0 rows of 0 columns
SET client_min_messages TO 'warning'
;
-- connect (2): 0 rows of 0 columns
SET standard_conforming_strings = on
;
-- connect (3): 0 rows of 0 columns
SET intervalstyle = iso_8601
;
-- connect (5): 10 rows of 2 columns
SELECT t.oid, t.typname
FROM pg_type as t
WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool', 'timestamp', 'timestamptz')
;
-- tables: answers
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','p')
;
-- data_sources: answers
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','v','m','p','f')
;
-- current_schema: 1 rows of 1 columns
SELECT current_schema
;
-- current_database: 1 rows of 1 columns
SELECT current_database()
;
-- encoding: 1 rows of 1 columns
SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()
;
-- ctype: 1 rows of 1 columns
SELECT datctype FROM pg_database WHERE datname = current_database()
;
-- schema_search_path: 1 rows of 1 columns
SHOW search_path
;
-- extensions: answers
SELECT extname FROM pg_extension
;
-- foreign_tables: 0 rows of 1 columns
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('f')
;
-- primary_key numbers: 0 rows of 1 columns
SELECT a.attname
  FROM (
         SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx
           FROM pg_index
          WHERE indrelid = '"numbers"'::regclass
            AND indisprimary
       ) i
  JOIN pg_attribute a
    ON a.attrelid = i.indrelid
   AND a.attnum = i.indkey[i.idx]
 ORDER BY i.idx
;
-- indexes numbers: 0 rows of 6 columns
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), t.oid,
                pg_catalog.obj_description(i.oid, 'pg_class') AS comment
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = i.relnamespace
WHERE i.relkind IN ('i', 'I')
  AND d.indisprimary = 'f'
  AND t.relname = 'numbers'
  AND n.nspname = ANY (current_schemas(false))
ORDER BY i.relname
;
-- check_constraints numbers: 0 rows of 3 columns
SELECT conname, pg_get_constraintdef(c.oid) AS constraintdef, c.convalidated AS valid
            FROM pg_constraint c
            JOIN pg_class t ON c.conrelid = t.oid
            WHERE c.contype = 'c'
              AND t.relname = 'numbers'
;
-- table_comment numbers: 1 rows of 1 columns
SELECT pg_catalog.obj_description(c.oid, 'pg_class')
FROM pg_catalog.pg_class c
  LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = 'numbers'
  AND c.relkind IN ('r','p')
  AND n.nspname = ANY (current_schemas(false))
;
-- table_exists? numbers: 1 rows of 1 columns
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = 'numbers' AND c.relkind IN ('r','p')
;
-- default_sequence_name numbers: 1 rows of 1 columns
SELECT pg_get_serial_sequence('numbers', 'id')
;
-- pk_and_sequence_for numbers: 0 rows of 3 columns
SELECT attr.attname, nsp.nspname, seq.relname
FROM pg_class      seq,
     pg_attribute  attr,
     pg_depend     dep,
     pg_constraint cons,
     pg_namespace  nsp
WHERE seq.oid           = dep.objid
  AND seq.relkind       = 'S'
  AND attr.attrelid     = dep.refobjid
  AND attr.attnum       = dep.refobjsubid
  AND attr.attrelid     = cons.conrelid
  AND attr.attnum       = cons.conkey[1]
  AND seq.relnamespace  = nsp.oid
  AND cons.contype      = 'p'
  AND dep.classid       = 'pg_class'::regclass
  AND dep.refobjid      = '"numbers"'::regclass
;
-- foreign_table_exists? numbers: 0 rows of 1 columns
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = 'numbers' AND c.relkind IN ('f')
;
-- schema_exists: 1 rows of 1 columns
SELECT COUNT(*) FROM pg_namespace WHERE nspname = 'public'
;
-- transaction (2): 0 rows of 0 columns
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
;
