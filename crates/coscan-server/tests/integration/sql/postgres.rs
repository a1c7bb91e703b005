//! Functions and forms of PostgreSQL, which give its answers or are refused.

use arrow::util::display::array_value_to_string;
use coscan_server::queries::ErrorKind;
use coscan_server::sql::Sql;
use datafusion::common::ParamValues;
use futures::TryStreamExt;

use crate::sql::fixture::Fixture;

#[tokio::test]
async fn functions_answer_as_in_postgresql() {
    let (fixture, ann) = Fixture::with_ann().await;
    for (expression, expected) in [
        ("to_char(TIMESTAMP '2024-03-05 10:20:30', 'YYYY-MM-DD HH24:MI')", "2024-03-05 10:20"),
        ("to_char(DATE '2024-03-05', '\"week\" IW, FMDay')", "week 10, Tuesday"),
        ("to_date('05/03/2024', 'DD/MM/YYYY')", "2024-03-05"),
        ("to_char(TIMESTAMP '2024-03-05', '%d')", "05"),
        ("age(TIMESTAMP '2024-01-01', TIMESTAMP '2023-01-01')", "12 mons"),
        ("current_setting('timezone')", "UTC"),
        ("current_setting('server_version_num')::int / 100", "1500"),
        ("coalesce(current_setting('nope', true), '-')", "-"),
        ("set_config('timezone', 'Asia/Kolkata', false)", "Asia/Kolkata"),
        ("current_setting('timezone')", "Asia/Kolkata"),
        ("has_table_privilege('numbers', 'select')", "true"),
        ("has_table_privilege('ann', 'public.numbers', 'SELECT')", "true"),
        ("has_table_privilege('numbers', 'insert')", "false"),
        ("has_table_privilege('secrets', 'select')", "false"),
        ("to_regclass('numbers')", "numbers"),
        ("coalesce(to_regclass('secrets'), '-')", "-"),
        ("count(*) FROM (SELECT id FROM numbers FETCH FIRST 3 ROWS ONLY) q", "3"),
        ("count(*) FROM (SELECT id FROM numbers LIMIT '3' OFFSET '1') q", "3"),
        ("user", "ann"),
        ("current_user, user", "ann"),
        ("current_role", "ann"),
        ("s FROM current_schema() s", "public"),
        ("max(i) FROM generate_series(1, 3) i", "3"),
        ("numbers.* FROM public.numbers WHERE id = 7", "7"),
        ("count(*) FROM numbers WHERE (id < 3) = 't' AND 'true'", "3"),
        ("('no' <> (1 < 3)) = 't'", "true"),
        ("count(*) FROM numbers WHERE (id < 3) IS NOT DISTINCT FROM 't'", "3"),
        ("count(*) FROM numbers WHERE word SIMILAR TO '%(1|2)'", "8572"),
        ("count(*) FROM numbers WHERE word NOT LIKE 'word!_%' ESCAPE '!'", "30000"),
        ("count(*) > 0 FROM pool", "true"),
        ("pg_typeof(1.5)", "double precision"),
        ("pg_typeof(ARRAY['a'])", "text[]"),
        ("INTERVAL '1 day 02:30' = INTERVAL '1 day 2 hours 30 minutes'", "true"),
        ("'2 hours 00:01:00'::interval = INTERVAL '121 minutes'", "true"),
        ("substring('foobar' FROM 'o(.)b')", "o"),
        ("substring('foobar' FROM 'o+')", "oo"),
        ("encode(arrow_cast(decode('00ff', 'hex'), 'BinaryView')::bytea, 'hex')", "00ff"),
        ("'abc'::\"char\"", "a"),
        (
            "pg_user FROM (WITH pg_user AS (SELECT max(id) AS pg_user FROM numbers) SELECT * FROM pg_user) q",
            "29999",
        ),
        (
            "count(*) FROM (WITH pg_locks AS (SELECT id FROM numbers) SELECT * FROM pg_locks) q",
            "30000",
        ),
        ("count(*) FROM (SELECT stddev(oid) FROM pg_policy) q", "1"),
        ("count(*) FROM (SELECT 1 FROM pg_policy HAVING count(*) = 0) q", "1"),
        ("count(*) FROM (SELECT count(*) FROM pg_policy GROUP BY ROLLUP(polname)) q", "1"),
        (
            "count(*) FROM pg_namespace WHERE nspname = 'public' AND oid <> ALL (SELECT oid FROM pg_policy)",
            "1",
        ),
        ("count(*) FROM pg_namespace WHERE oid = ANY (SELECT oid FROM pg_policy)", "0"),
        ("ctid FROM (SELECT 5 AS ctid FROM pg_class LIMIT 1) q", "5"),
        (
            "coalesce(max(typtype = 'c')::text, '-') FROM (SELECT 'c' AS typtype FROM pg_class LIMIT 1) q",
            "true",
        ),
        ("'x'::name", "x"),
        ("count(*) > 100 FROM information_schema.routines", "true"),
        ("count(*) > 100 FROM information_schema.parameters", "true"),
        ("count(*) FROM (SELECT id FROM numbers OFFSET 29999 ROWS FETCH NEXT ROW ONLY) q", "1"),
    ] {
        let batches = fixture.rows(&ann, &format!("SELECT {expression}")).await;
        let batches = batches.unwrap_or_else(|error| panic!("{expression}: {error}"));
        let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
        assert_eq!(array_value_to_string(batch.column(0), 0).unwrap(), expected, "{expression}");
    }
}

#[tokio::test]
async fn each_statement_has_its_own_time_also_if_it_was_planned_before() {
    let (fixture, ann) = Fixture::with_ann().await;
    let planned = fixture.service.plan(&ann, Sql::Text("SELECT now(), current_timestamp")).await;
    let planned = planned.unwrap();
    let mut times = Vec::new();
    for _ in 0..2 {
        let running =
            fixture.service.run(&ann, planned.clone(), ParamValues::List(Vec::new())).await;
        let batches: Vec<_> = running.unwrap().try_collect().await.unwrap();
        let [time, same] =
            [0, 1].map(|column| array_value_to_string(batches[0].column(column), 0).unwrap());
        assert_eq!(time, same);
        times.push(time);
    }
    assert!(times[0] < times[1], "{times:?}");
    assert!(times[0].ends_with('Z'), "{times:?}");
    for (zone, offset) in [("Asia/Kolkata", "+05:30"), ("Asia/Tokyo", "+09:00")] {
        ann.set("timezone", Some(zone)).unwrap();
        for function in ["now()", "to_timestamp(0)"] {
            let batches = fixture.rows(&ann, &format!("SELECT {function}")).await.unwrap();
            let time = array_value_to_string(batches[0].column(0), 0).unwrap();
            assert!(time.ends_with(offset), "{function} in {zone}: {time}");
        }
    }
}

#[tokio::test]
async fn what_would_be_left_out_is_refused() {
    let (fixture, ann) = Fixture::with_ann().await;
    for (sql, expected) in [
        ("SELECT count(*) FROM numbers TABLESAMPLE SYSTEM (10)", ErrorKind::NotSupported),
        ("SELECT id FROM numbers FETCH FIRST 3 ROWS WITH TIES", ErrorKind::NotSupported),
        ("SELECT to_char(TIMESTAMP '2024-03-05', 'Month')", ErrorKind::NotSupported),
        ("SELECT to_char(now(), word) FROM numbers", ErrorKind::NotSupported),
        ("SELECT age(now())", ErrorKind::NotSupported),
        ("SELECT age('rubbish', now())", ErrorKind::InvalidValue),
        ("SELECT id FROM numbers LIMIT 2 FETCH FIRST 5 ROWS ONLY", ErrorKind::NotSupported),
        ("SELECT id FROM numbers WHERE word ~ word", ErrorKind::NotSupported),
        ("SELECT id FROM numbers WHERE word SIMILAR TO word", ErrorKind::NotSupported),
        ("SELECT substring('ac' FROM 'a(b)?(c)')", ErrorKind::NotSupported),
        ("SELECT ARRAY['abc']::varchar(2)[]", ErrorKind::NotSupported),
        ("WITH pg_constraint AS (SELECT 1) SELECT * FROM pg_constraint", ErrorKind::NotSupported),
        ("SELECT 1::bytea", ErrorKind::InvalidValue),
        ("SELECT 'a' SIMILAR TO '[a'", ErrorKind::InvalidValue),
        ("SELECT '{}'::jsonb", ErrorKind::NotSupported),
        ("SELECT '{'::json", ErrorKind::InvalidValue),
        ("SELECT 'x'::uuid", ErrorKind::InvalidValue),
        ("SELECT '\\x0'::bytea", ErrorKind::InvalidValue),
        ("SELECT chr(0)", ErrorKind::InvalidValue),
        ("SELECT 1 WHERE 'a' LIKE 'a/' ESCAPE '/'", ErrorKind::InvalidValue),
        ("SET ROLE bob", ErrorKind::NotSupported),
        ("SELECT current_setting('nope')", ErrorKind::UnknownSetting),
    ] {
        let error = fixture.error(&ann, sql).await;
        assert_eq!(error.kind, expected, "{sql}: {error}");
    }
}

#[tokio::test]
async fn columns_may_have_one_name() {
    let (fixture, ann) = Fixture::with_ann().await;
    for (sql, expected) in [
        ("SELECT id, id FROM numbers ORDER BY id LIMIT 1", ["id", "id"]),
        ("SELECT 1 AS a, 2 AS a", ["a", "a"]),
        ("SELECT count(*), count(*) FROM numbers", ["count(*)", "count(*)"]),
        ("SELECT a.id, a.id FROM numbers a LIMIT 1", ["id", "id"]),
        ("SELECT 1 AS K, 2 AS k", ["k", "k"]),
        ("SELECT ID, id FROM numbers LIMIT 1", ["id", "id"]),
        ("(SELECT id, id FROM numbers) LIMIT 1", ["id", "id"]),
        ("SELECT id, word FROM numbers WHERE id = 0 UNION SELECT 1, 'x' LIMIT 1", ["id", "word"]),
        ("SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 4 LIMIT 1", ["a", "a"]),
    ] {
        let planned = fixture.service.plan(&ann, Sql::Text(sql)).await.unwrap();
        let names = |schema: &arrow::datatypes::Schema| -> Vec<String> {
            schema.fields().iter().map(|field| field.name().clone()).collect()
        };
        assert_eq!(names(&planned.schema), expected, "{sql}");
        let running = fixture.start(&ann, sql).await.unwrap();
        assert_eq!(names(&running.schema), expected, "{sql}");
        assert_eq!(fixture.rows(&ann, sql).await.unwrap()[0].num_columns(), 2, "{sql}");
    }
}
