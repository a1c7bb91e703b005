-- # dbt-core 1.10.23 with dbt-postgres 1.11.0 (debug, run, docs generate, test, show), recorded by running; DDL left out
-- dbt run: answers
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "list_coscan"} */

    select distinct nspname from pg_namespace
;
-- dbt run (2): answers
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "list_coscan_public"} */
select
      'coscan' as database,
      tablename as name,
      schemaname as schema,
      'table' as type
    from pg_tables
    where schemaname ilike 'public'
    union all
    select
      'coscan' as database,
      viewname as name,
      schemaname as schema,
      'view' as type
    from pg_views
    where schemaname ilike 'public'
    union all
    select
      'coscan' as database,
      matviewname as name,
      schemaname as schema,
      'materialized_view' as type
    from pg_matviews
    where schemaname ilike 'public'
    union all
    select distinct
     'coscan' as database,
     proname as name,
     ns.nspname as schema,
     'function' as type
    from pg_proc
     join pg_namespace as ns on pronamespace = ns.oid
    where ns.nspname ilike 'public'
;
-- dbt run (4): 0 rows of 4 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "master"} */
select distinct
        dependent_namespace.nspname as dependent_schema,
        dependent_class.relname as dependent_name,
        referenced_namespace.nspname as referenced_schema,
        referenced_class.relname as referenced_name

    -- Query for views: views are entries in pg_class with an entry in pg_rewrite, but we avoid
    -- a seq scan on pg_rewrite by leveraging the fact there is an "internal" row in pg_depend for
    -- the view...
    from pg_class as dependent_class
    join pg_namespace as dependent_namespace on dependent_namespace.oid = dependent_class.relnamespace
    join pg_depend as dependent_depend on dependent_depend.refobjid = dependent_class.oid
        and dependent_depend.classid = 'pg_rewrite'::regclass
        and dependent_depend.refclassid = 'pg_class'::regclass
        and dependent_depend.deptype = 'i'

    -- ... and via pg_depend (that has a row per column, hence the need for "distinct" above, and
    -- making sure to exclude the internal row to avoid a view appearing to depend on itself)...
    join pg_depend as joining_depend on joining_depend.objid = dependent_depend.objid
        and joining_depend.classid = 'pg_rewrite'::regclass
        and joining_depend.refclassid = 'pg_class'::regclass
        and joining_depend.refobjid != dependent_depend.refobjid

    -- ... we can find the tables they query from in pg_class, but excluding system tables. Note we
    -- don't need need to exclude _dependent_ system tables, because they only query from other
    -- system tables, and so are automatically excluded by excluding _referenced_ system tables
    join pg_class as referenced_class on referenced_class.oid = joining_depend.refobjid
    join pg_namespace as referenced_namespace on referenced_namespace.oid = referenced_class.relnamespace
        and referenced_namespace.nspname != 'information_schema'
        and referenced_namespace.nspname not like 'pg\_%'

    order by
        dependent_schema, dependent_name, referenced_schema, referenced_name;
;
-- dbt test: 1 rows of 3 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "node_id": "test.p.source_not_null_s_numbers_id.3d59239ef3"} */

    
    select
      count(*) as failures,
      count(*) != 0 as should_warn,
      count(*) != 0 as should_error
    from (
      
    
  
    
    



select id
from "coscan"."public"."numbers"
where id is null



  
  
      
    ) dbt_internal_test
;
-- dbt test (2): 1 rows of 3 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "node_id": "test.p.source_unique_s_numbers_id.ed0529b59c"} */

    
    select
      count(*) as failures,
      count(*) != 0 as should_warn,
      count(*) != 0 as should_error
    from (
      
    
  
    
    

select
    id as unique_field,
    count(*) as n_records

from "coscan"."public"."numbers"
where id is not null
group by id
having count(*) > 1



  
  
      
    ) dbt_internal_test
;
-- dbt adapter macros: 2 rows of 5 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "macro_x"} */

      select
          column_name,
          data_type,
          character_maximum_length,
          numeric_precision,
          numeric_scale

      from "coscan".INFORMATION_SCHEMA.columns
      where table_name = 'numbers'
        
        and table_schema = 'public'
        
      order by ordinal_position
;
-- dbt adapter macros (3): 1 rows of 1 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "macro_x"} */

    select count(*) from pg_namespace where nspname = 'public'
;
-- dbt adapter macros (4): 0 rows of 2 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "macro_x"} */

    select grantee, privilege_type
  from "coscan".INFORMATION_SCHEMA.role_table_grants
      where grantor = current_role
        and grantee != current_role
        and table_schema = 'public'
        and table_name = 'numbers'
;
-- dbt adapter macros (5): 0 rows of 4 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "macro_x"} */

    
    select
        i.relname                                   as name,
        m.amname                                    as method,
        ix.indisunique                              as "unique",
        array_to_string(array_agg(a.attname), ',')  as column_names
    from pg_index ix
    join pg_class i
        on i.oid = ix.indexrelid
    join pg_am m
        on m.oid=i.relam
    join pg_class t
        on t.oid = ix.indrelid
    join pg_namespace n
        on n.oid = t.relnamespace
    join pg_attribute a
        on a.attrelid = t.oid
        and a.attnum = ANY(ix.indkey)
    where t.relname = 'numbers'
      and n.nspname = 'public'
      and t.relkind in ('r', 'm')
    group by 1, 2, 3
    order by 1, 2, 3
;
-- dbt adapter macros (6): 1 rows of 1 columns
/* {"app": "dbt", "dbt_version": "1.10.23", "profile_name": "p", "target_name": "dev", "connection_name": "macro_x"} */

    select 1
;
