//! Parameters and results of all types, in text and in binary form.

use bytes::{BufMut, BytesMut};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::postgres::{code, texts};
use crate::support::ROWS;
use crate::support::server::start_with_ann;

/// A parameter in text form, whatever its type.
#[derive(Debug)]
struct InText<'a>(&'a str);

impl ToSql for InText<'_> {
    fn to_sql(
        &self,
        _of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_of: &Type) -> bool {
        true
    }

    fn encode_format(&self, _of: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// A value in binary form, whatever its type.
#[derive(Debug)]
struct InBinary(Vec<u8>);

impl<'a> FromSql<'a> for InBinary {
    fn from_sql(
        _of: &Type,
        bytes: &'a [u8],
    ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(bytes.to_vec()))
    }

    fn accepts(_of: &Type) -> bool {
        true
    }
}

impl ToSql for InBinary {
    fn to_sql(
        &self,
        _of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_of: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_have_parameters_of_all_sorts() {
    let (_running, client) = start_with_ann().await;
    let sql = "SELECT id, word FROM numbers WHERE id BETWEEN $1 AND $2 AND word = $3 ORDER BY id";
    let statement = client.prepare(sql).await.unwrap();
    for first in [0_i64, 7, 70] {
        let rows = client.query(&statement, &[&first, &(first + 14), &"word 3"]).await.unwrap();
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(ids, [first + 3, first + 10]);
        assert_eq!(rows[0].get::<_, &str>("word"), "word 3");
    }
    let row = client
        .query_one(
            "SELECT $1::int, $2::double precision, $3::text, $4::boolean, $5::bigint",
            &[&42_i32, &0.5_f64, &"x", &true, &None::<i64>],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i32>(0), 42);
    assert_eq!(row.get::<_, f64>(1), 0.5);
    assert_eq!(row.get::<_, &str>(2), "x");
    assert!(row.get::<_, bool>(3));
    assert_eq!(row.get::<_, Option<i64>>(4), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_have_the_types_that_their_client_declares() {
    let (_running, client) = start_with_ann().await;
    let sql = "SELECT count(*) FROM numbers WHERE id < $1";
    let statement = client.prepare_typed(sql, &[Type::FLOAT8]).await.unwrap();
    assert_eq!(statement.params(), [Type::FLOAT8]);
    let row = client.query_one(&statement, &[&1.5_f64]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 2, "1.5 is not rounded");
    let sql = "SELECT count(*) FROM numbers WHERE word = ANY($1)";
    for declared in [&[][..], &[Type::TEXT_ARRAY]] {
        let statement = client.prepare_typed(sql, declared).await.unwrap();
        let row = client.query_one(&statement, &[&vec!["word 1", "x"]]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), (ROWS + 5) / 7);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_on_what_does_not_exist_keep_their_parameters() {
    let (_running, client) = start_with_ann().await;
    let sql = "SELECT indexrelid, unnest(indkey) AS key FROM pg_index WHERE indrelid = $1";
    let statement = client.prepare(sql).await.unwrap();
    assert_eq!(statement.params().len(), 1);
    let names: Vec<_> = statement.columns().iter().map(|column| column.name()).collect();
    assert_eq!(names, ["indexrelid", "key"]);
    assert!(client.query(&statement, &[&"16384"]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_have_a_form_whatever_their_type() {
    let (_running, client) = start_with_ann().await;
    let sql = "SELECT arrow_cast(-7, 'Int8'), arrow_cast(1.5, 'Float16'), [[1], [2, NULL]], NULL";
    let row = client.query_one(sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i16>(0), row.get::<_, f32>(1)), (-7, 1.5));
    assert_eq!(row.get::<_, &str>(2), "[[1], [2, NULL]]");
    assert_eq!(row.get::<_, Option<&str>>(3), None);
    let sql = "SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0))";
    assert_eq!(texts(&client, sql).await.unwrap(), ["9".repeat(38)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_sent_as_they_are_or_not_at_all() {
    let (_running, client) = start_with_ann().await;
    for unit in ["YearMonth", "DayTime", "MonthDayNano"] {
        let sql = format!("SELECT arrow_cast(NULL, 'Interval({unit})')");
        assert_eq!(texts(&client, &sql).await.unwrap(), [""; 0], "{unit}");
    }
    let sql = "SELECT CAST('-inf' AS REAL), CAST('inf' AS DOUBLE PRECISION)";
    assert_eq!(texts(&client, sql).await.unwrap(), ["-Infinity"]);
    // These years are beyond those that have a form.
    let sql = "SELECT arrow_cast(9223372036854775807, 'Timestamp(Second, None)')";
    assert_eq!(texts(&client, sql).await, Err(SqlState::FEATURE_NOT_SUPPORTED));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_read_as_they_are() {
    let (_running, client) = start_with_ann().await;
    for text in ["", "it''s", "{a,b}", "\"a\"", "\\", "NULL", " a ", "é\n"] {
        for declared in [&[][..], &[Type::TEXT], &[Type::VARCHAR], &[Type::BPCHAR], &[Type::NAME]] {
            let sql = "SELECT $1::text, $1 = 'it''''s'";
            let statement = client.prepare_typed(sql, declared).await.unwrap();
            for parameter in [&InText(text) as &(dyn ToSql + Sync), &text] {
                let row = client.query_one(&statement, &[parameter]).await.unwrap();
                assert_eq!(row.get::<_, &str>(0), text, "{declared:?}");
                assert_eq!(row.get::<_, bool>(1), text == "it''s", "{declared:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_in_text_form_are_read_as_in_postgresql() {
    let (_running, client) = start_with_ann().await;
    let sql = "SELECT count(*) FROM (VALUES (''), ('NULL'), ('a,b'), ('\"'), ('\\'), ('{}'), ('x'), (NULL)) AS t(v)
               WHERE v = ANY($1)";
    for (array, expected) in [
        (r#"{""}"#, 1),
        ("{}", 0),
        ("{NULL}", 0),
        (r#"{"NULL"}"#, 1),
        (r#"{"","NULL","a,b","\"","\\","{}",x}"#, 7),
        ("{a,b}", 0),
        (r"{a\,b, x }", 2),
        ("[0:1]={x,y}", 1),
    ] {
        for declared in [&[][..], &[Type::TEXT_ARRAY], &[Type::TEXT], &[Type::VARCHAR]] {
            let statement = client.prepare_typed(sql, declared).await.unwrap();
            assert_eq!(statement.params(), [Type::TEXT_ARRAY]);
            let row = client.query_one(&statement, &[&InText(array)]).await.unwrap();
            assert_eq!(row.get::<_, i64>(0), expected, "{array} {declared:?}");
        }
    }
    for (array, expected) in [
        ("{{a},{b}}", SqlState::FEATURE_NOT_SUPPORTED),
        ("{a", SqlState::INVALID_TEXT_REPRESENTATION),
        ("a", SqlState::INVALID_TEXT_REPRESENTATION),
        ("", SqlState::INVALID_TEXT_REPRESENTATION),
        ("[1:3]={a}", SqlState::INVALID_TEXT_REPRESENTATION),
    ] {
        let error = client.query(sql, &[&InText(array)]).await.unwrap_err();
        assert_eq!(code(&error), expected, "{array}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_not_rounded_to_what_they_are_compared_with() {
    let (_running, client) = start_with_ann().await;
    for (column, value, expected) in [
        ("CAST(id AS DECIMAL(9, 2))", "2.005", 3),
        ("CAST(id AS DECIMAL(9, 2))", "99999999999999999999.5", ROWS),
        ("CAST(id AS DECIMAL(25, 2)) + 10000000000", "10000000001.3333333333333333333333333333", 2),
        ("arrow_cast(id, 'Timestamp(Second, None)')", "9999-12-31 00:00:00", ROWS),
        ("arrow_cast(id, 'Timestamp(Nanosecond, None)')", "1970-01-01 00:00:00.000001", 1000),
    ] {
        let sql = format!("SELECT count(*) FROM numbers WHERE {column} < $1");
        let row = client.query_one(&sql, &[&InText(value)]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), expected, "{sql} {value}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_have_the_type_of_what_is_looked_for() {
    let (_running, client) = start_with_ann().await;
    for (value, of, array, expected) in [
        ("id", Type::INT8_ARRAY, "{1,NULL,5}", 2),
        ("CAST(id AS INT)", Type::INT4_ARRAY, "{1,5}", 2),
        ("CAST(id AS DOUBLE) / 2", Type::FLOAT8_ARRAY, "{0.5,0.3}", 1),
        ("CAST(id AS DECIMAL(15, 2))", Type::NUMERIC_ARRAY, "{1.005,3.0,7,NULL}", 2),
        ("CAST(id AS VARCHAR)", Type::TEXT_ARRAY, "{1,05}", 1),
        ("CAST(id AS TIMESTAMP)", Type::TIMESTAMP_ARRAY, r#"{"1970-01-01 00:00:00"}"#, 1),
    ] {
        let conditions = [format!("{value} = ANY($1)"), format!("NOT {value} <> ALL($1)")];
        for (condition, declared) in conditions.iter().flat_map(|condition| {
            [&[][..], &[Type::TEXT], &[Type::VARCHAR]].map(|declared| (condition, declared))
        }) {
            let sql =
                format!("SELECT count(*) FROM (SELECT {condition} AS c FROM numbers) WHERE c");
            let statement = client.prepare_typed(&sql, declared).await.unwrap();
            assert_eq!(statement.params(), std::slice::from_ref(&of), "{sql}");
            let row = client.query_one(&statement, &[&InText(array)]).await.unwrap();
            assert_eq!(row.get::<_, i64>(0), expected, "{sql} {array} {declared:?}");
        }
    }
    // The column is not cast to fewer digits than the 29 of the number.
    let sql = "SELECT count(*) FROM (VALUES (CAST('10000000000000000000000000000' AS DECIMAL(38, 0)))) AS t(d) WHERE d = ANY($1)";
    for (array, expected) in [("{1.5}", 0), ("{10000000000000000000000000000}", 1)] {
        let row = client.query_one(sql, &[&InText(array)]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), expected, "{array}");
    }
    // The column has more digits after the point than numbers of clients keep.
    let sql = "SELECT count(*) FROM (VALUES (CAST('0.12345678901' AS DECIMAL(20, 15)))) AS t(d) WHERE d = ANY($1)";
    for (array, expected) in [("{0.123456789}", 0), ("{0.12345678901}", 1)] {
        let row = client.query_one(sql, &[&InText(array)]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), expected, "{array}");
    }
    let sql = "SELECT count(*) FROM numbers WHERE id IN
               (SELECT id FROM numbers WHERE CAST(id AS DECIMAL(9, 1)) = ANY($1))";
    let statement = client.prepare_typed(sql, &[Type::NUMERIC_ARRAY]).await.unwrap();
    let row = client.query_one(&statement, &[&InText("{1.04,3.00}")]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_of_all_types_come_back_in_both_forms() {
    let (_running, client) = start_with_ann().await;
    for (of, sent, expected) in [
        (Type::BOOL_ARRAY, "{t,NULL,false}", "{t,NULL,f}"),
        (Type::INT2_ARRAY, "{1,NULL,-7}", "{1,NULL,-7}"),
        (Type::INT4_ARRAY, "{ 1 , 2 }", "{1,2}"),
        (Type::INT8_ARRAY, "{}", "{}"),
        (Type::INT8_ARRAY, "{NULL}", "{NULL}"),
        (Type::FLOAT4_ARRAY, "{1.5,NaN}", "{1.5,NaN}"),
        (Type::FLOAT8_ARRAY, "{-0.1,Infinity,NULL}", "{-0.1,Infinity,NULL}"),
        (
            Type::NUMERIC_ARRAY,
            "{9999999999999999999999999999.5,NULL}",
            "{9999999999999999999999999999.5000000000,NULL}",
        ),
        (Type::DATE_ARRAY, "{2024-02-29,NULL}", "{2024-02-29,NULL}"),
        (Type::TIMESTAMP_ARRAY, r#"{"2024-02-29 12:34:56.5"}"#, r#"{"2024-02-29 12:34:56.5"}"#),
        (
            Type::TIMESTAMPTZ_ARRAY,
            r#"{"2024-02-29 12:00:00+02",NULL}"#,
            r#"{"2024-02-29 10:00:00+00",NULL}"#,
        ),
        (Type::TIME_ARRAY, "{12:34:56}", "{12:34:56}"),
        (Type::BYTEA_ARRAY, r#"{"\\x00ff","\\x"}"#, r#"{"\\x00ff","\\x"}"#),
        (
            Type::TEXT_ARRAY,
            r#"{"",a b,"NULL",NULL,"a\"b\\"}"#,
            r#"{"","a b","NULL",NULL,"a\"b\\"}"#,
        ),
    ] {
        let of = std::slice::from_ref(&of);
        let select = client.prepare_typed("SELECT $1", of).await.unwrap();
        assert_eq!(select.columns()[0].type_(), &of[0]);
        let row = client.query_one(&select, &[&InText(sent)]).await.unwrap();
        // A value that was received in binary form is sent again in it.
        let binary: InBinary = row.get(0);
        for parameter in [&InText(sent) as &(dyn ToSql + Sync), &binary] {
            client.batch_execute("BEGIN").await.unwrap();
            let declare = "DECLARE c CURSOR FOR SELECT $1";
            let declare = client.prepare_typed(declare, of).await.unwrap();
            client.execute(&declare, &[parameter]).await.unwrap();
            let fetched = texts(&client, "FETCH 1 FROM c").await.unwrap();
            assert_eq!(fetched, [expected], "{parameter:?}");
            client.batch_execute("COMMIT").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_rows_may_be_parameters() {
    let (_running, client) = start_with_ann().await;
    let sql = "SELECT id FROM numbers ORDER BY id LIMIT $1 OFFSET $2";
    let statement = client.prepare(sql).await.unwrap();
    assert_eq!(statement.params(), [Type::INT8, Type::INT8]);
    let rows = client.query(&statement, &[&2_i64, &5_i64]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), [5, 6]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_zones_and_floats_are_written_as_in_postgresql() {
    let (_running, client) = start_with_ann().await;
    for (expression, expected) in [
        ("named_struct('a', NULL::int, 'b', NULL::text)", "(,)"),
        ("named_struct('a', 1, 'b', 'x,\"y')", r#"(1,"x,""y")"#),
        ("named_struct('a', '', 'b', named_struct('c', 1, 'd', 2))", r#"("","(1,2)")"#),
        (
            "'2024-01-01 12:00:00+00'::timestamptz AT TIME ZONE 'Asia/Kolkata'",
            "2024-01-01 17:30:00+05:30",
        ),
        ("-0.0::double", "-0"),
        ("1e20::double", "1e+20"),
        ("DATE '2024-02-29'", "2024-02-29"),
        ("INTERVAL '14 months 3 days 4 hours'", "1 year 2 mons 3 days 04:00:00"),
    ] {
        let answer = texts(&client, &format!("SELECT {expression}")).await.unwrap();
        assert_eq!(answer, [expected], "{expression}");
    }
}
