-- # Go: lib/pq 1.12.3, pgx 5.12.0, gorm 1.31.2 with gorm.io/driver/postgres 1.6.3, recorded by running
-- pgx LoadType (2): answers
select typtype::text, typbasetype from pg_type where oid='public.numbers'::regtype::oid
;
-- pgx LoadType (3): answers
select typrelid from pg_type where oid='public.numbers'::regtype::oid
;
-- pgx LoadType (4): 2 rows of 2 columns
select attname, atttypid
from pg_attribute
where attrelid='public.numbers'::regclass::oid
	and not attisdropped
	and attnum > 0
order by attnum
;
-- pgx LoadType (7): answers
select typelem, typdelim::text from pg_type where oid='public.numbers[]'::regtype::oid
;
-- pgx LoadType (9): answers
select typtype::text, typbasetype from pg_type where oid='3904'
;
-- pgx LoadType (10): answers
select rngsubtype from pg_range where rngtypid='3904'
;
-- gorm CurrentDatabase: 1 rows of 1 columns
SELECT CURRENT_DATABASE()
;
-- gorm HasTable numbers: 1 rows of 1 columns
SELECT count(*) FROM information_schema.tables WHERE table_schema = CURRENT_SCHEMA() AND table_name = 'numbers' AND table_type = 'BASE TABLE'
;
-- gorm ColumnTypes numbers (3): 0 rows of 1 columns
SELECT constraint_name FROM information_schema.table_constraints tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_catalog, table_name, constraint_name) JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema AND tc.table_name = c.table_name AND ccu.column_name = c.column_name WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND c.table_catalog = 'coscan' AND c.table_schema = CURRENT_SCHEMA() AND c.table_name = 'numbers' AND constraint_type = 'UNIQUE'
;
-- gorm ColumnTypes numbers (4): 0 rows of 3 columns
SELECT c.column_name, constraint_name, constraint_type FROM information_schema.table_constraints tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_catalog, table_name, constraint_name) JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema AND tc.table_name = c.table_name AND ccu.column_name = c.column_name WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND c.table_catalog = 'coscan' AND c.table_schema = CURRENT_SCHEMA() AND c.table_name = 'numbers'
;
-- gorm ColumnTypes numbers (5): 2 rows of 2 columns
SELECT a.attname as column_name, format_type(a.atttypid, a.atttypmod) AS data_type	FROM pg_attribute a JOIN pg_class b ON a.attrelid = b.oid AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = CURRENT_SCHEMA())	WHERE a.attnum > 0	AND NOT a.attisdropped	AND b.relname = 'numbers'
;
-- gorm GetIndexes numbers: 0 rows of 5 columns
SELECT
	ct.relname AS table_name,
	ci.relname AS index_name,
	i.indisunique AS non_unique,
	i.indisprimary AS primary,
	a.attname AS column_name
FROM
	pg_index i
	LEFT JOIN pg_class ct ON ct.oid = i.indrelid
	LEFT JOIN pg_class ci ON ci.oid = i.indexrelid
	LEFT JOIN pg_attribute a ON a.attrelid = ct.oid
	LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid
WHERE
	a.attnum = ANY(i.indkey)
	AND con.oid IS NULL
	AND ct.relkind = 'r'
	AND ct.relname = 'numbers'
 AND ct.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = CURRENT_SCHEMA())
;
-- gorm HasTable public.numbers: 1 rows of 1 columns
SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'numbers' AND table_type = 'BASE TABLE'
;
-- gorm ColumnTypes public.numbers (3): 0 rows of 1 columns
SELECT constraint_name FROM information_schema.table_constraints tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_catalog, table_name, constraint_name) JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema AND tc.table_name = c.table_name AND ccu.column_name = c.column_name WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND c.table_catalog = 'coscan' AND c.table_schema = 'public' AND c.table_name = 'numbers' AND constraint_type = 'UNIQUE'
;
-- gorm ColumnTypes public.numbers (4): 0 rows of 3 columns
SELECT c.column_name, constraint_name, constraint_type FROM information_schema.table_constraints tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_catalog, table_name, constraint_name) JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema AND tc.table_name = c.table_name AND ccu.column_name = c.column_name WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND c.table_catalog = 'coscan' AND c.table_schema = 'public' AND c.table_name = 'numbers'
;
-- gorm ColumnTypes public.numbers (5): 2 rows of 2 columns
SELECT a.attname as column_name, format_type(a.atttypid, a.atttypmod) AS data_type	FROM pg_attribute a JOIN pg_class b ON a.attrelid = b.oid AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = 'public')	WHERE a.attnum > 0	AND NOT a.attisdropped	AND b.relname = 'numbers'
;
-- gorm GetIndexes public.numbers: 0 rows of 5 columns
SELECT
	ct.relname AS table_name,
	ci.relname AS index_name,
	i.indisunique AS non_unique,
	i.indisprimary AS primary,
	a.attname AS column_name
FROM
	pg_index i
	LEFT JOIN pg_class ct ON ct.oid = i.indrelid
	LEFT JOIN pg_class ci ON ci.oid = i.indexrelid
	LEFT JOIN pg_attribute a ON a.attrelid = ct.oid
	LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid
WHERE
	a.attnum = ANY(i.indkey)
	AND con.oid IS NULL
	AND ct.relkind = 'r'
	AND ct.relname = 'numbers'
 AND ct.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'public')
;
-- gorm HasColumn: 1 rows of 1 columns
SELECT count(*) FROM INFORMATION_SCHEMA.columns WHERE table_schema = CURRENT_SCHEMA() AND table_name = 'numbers' AND column_name = 'id'
;
-- gorm HasIndex: 1 rows of 1 columns
SELECT count(*) FROM pg_indexes WHERE tablename = 'numbers' AND indexname = 'ix' AND schemaname = CURRENT_SCHEMA()
;
