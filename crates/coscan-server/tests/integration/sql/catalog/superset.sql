-- # Apache Superset 6.1.0: SQLAlchemy 1.4.54 with psycopg2 (recorded by running; Superset 6.1.0 requires sqlalchemy <2,>=1.4; Superset itself was not run), plus statements of its db_engine_specs/postgres.py (from the source)
-- SQLAlchemy 1.4 connect (2): 0 rows of 2 columns
SELECT t.oid, typarray
FROM pg_type t JOIN pg_namespace ns
    ON typnamespace = ns.oid
WHERE typname = 'hstore';
;
-- SQLAlchemy 1.4 connect (5): 1 rows of 1 columns
select current_schema()
;
-- SQLAlchemy 1.4 get_schema_names: 2 rows of 1 columns
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname
;
-- SQLAlchemy 1.4 get_sequence_names: 0 rows of 1 columns
SELECT relname FROM pg_class c join pg_namespace n on n.oid=c.relnamespace where relkind='S' and n.nspname='public'
;
-- SQLAlchemy 1.4 get_sorted_table_and_fkc_names: 1 rows of 1 columns
SELECT c.oid
            FROM pg_catalog.pg_class c
            LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE (pg_catalog.pg_table_is_visible(c.oid))
            AND c.relname = 'numbers' AND c.relkind in
            ('r', 'v', 'm', 'f', 'p')
;
-- SQLAlchemy 1.4 get_enums(all): 0 rows of 4 columns
SELECT t.typname as "name",
               -- no enum defaults in 8.4 at least
               -- t.typdefault as "default",
               pg_catalog.pg_type_is_visible(t.oid) as "visible",
               n.nspname as "schema",
               e.enumlabel as "label"
            FROM pg_catalog.pg_type t
                 LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
                 LEFT JOIN pg_catalog.pg_enum e ON t.oid = e.enumtypid
            WHERE t.typtype = 'e'
        ORDER BY "schema", "name", e.oid
;
-- SQLAlchemy 1.4 get_columns(public) numbers: 1 rows of 1 columns
SELECT c.oid
            FROM pg_catalog.pg_class c
            LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE (n.nspname = 'public')
            AND c.relname = 'numbers' AND c.relkind in
            ('r', 'v', 'm', 'f', 'p')
;
-- SQLAlchemy 1.4 get_pk_constraint numbers (2): 0 rows of 1 columns
SELECT conname
           FROM  pg_catalog.pg_constraint r
           WHERE r.conrelid = 'public.numbers'::regclass::oid AND r.contype = 'p'
           ORDER BY 1
;
-- SQLAlchemy 1.4 get_check_constraints numbers: 0 rows of 2 columns
SELECT
                cons.conname as name,
                pg_get_constraintdef(cons.oid) as src
            FROM
                pg_catalog.pg_constraint cons
            WHERE
                cons.conrelid = 'public.numbers'::regclass::oid AND
                cons.contype = 'c'
;
-- SQLAlchemy 1.4 has_table numbers: 1 rows of 1 columns
select relname from pg_class c join pg_namespace n on n.oid=c.relnamespace where pg_catalog.pg_table_is_visible(c.oid) and relname='numbers'
;
-- SQLAlchemy 1.4 get_view_definition: 0 rows of 1 columns
SELECT pg_get_viewdef(c.oid) view_def FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relname = 'v_none' AND c.relkind IN ('v', 'm')
;
-- adjust_engine_params search_path: 0 rows of 0 columns
set search_path = "public"
;
