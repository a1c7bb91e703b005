//! Functions whose results may be much larger than their arguments.

use arrow::util::pretty::pretty_format_batches;
use coscan_server::queries::ErrorKind;

use crate::sql::fixture::Fixture;

#[tokio::test]
async fn results_that_would_be_too_large_are_refused_before_they_are_made() {
    let (fixture, ann) = Fixture::with_ann().await;
    let doubled = |expression: &str| {
        let next = |n: usize| format!(", q{} AS (SELECT {expression} AS x FROM q{n})", n + 1);
        let queries: String = (0..40).map(next).collect();
        format!(
            "WITH q0 AS (SELECT word AS x FROM numbers){queries} SELECT max(length(x)) FROM q40"
        )
    };
    for sql in [
        "SELECT length(repeat('x', 1000000000))".to_owned(),
        "SELECT array_length(range(0, 800000000))".to_owned(),
        "SELECT array_length(generate_series(TIMESTAMP '1900-01-01', TIMESTAMP '2000-01-01', INTERVAL '1 second'))"
            .to_owned(),
        "SELECT max(length(repeat(word, 100000))) FROM numbers".to_owned(),
        "SELECT length(lpad('x', 1000000000))".to_owned(),
        "SELECT length(rpad('x', 1000000000, 'ab'))".to_owned(),
        "SELECT array_length(array_repeat('x', 1000000000))".to_owned(),
        "SELECT array_length(array_resize([1], 1000000000, 2))".to_owned(),
        "SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 1000000)))".to_owned(),
        "SELECT length(regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000000), 'g'))"
            .to_owned(),
        "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))".to_owned(),
        "SELECT strpos(repeat('a', 1000000), repeat('a', 500000) || 'b')".to_owned(),
        "SELECT array_has_all(range(0, 1000000), range(0, 1000000))".to_owned(),
        "SELECT length(string_agg(word, repeat('x', 1000000))) FROM numbers".to_owned(),
        format!("SELECT concat_ws(repeat('x', 15000000){})", ", ''".repeat(10_000)),
        "SELECT array_to_string(array_repeat('a', 500000), repeat('x', 15000000))".to_owned(),
        "SELECT generate_series(DATE '2024-01-01', DATE '2023-01-01', INTERVAL '1 month -31 days')"
            .to_owned(),
        "SELECT array_replace_all(array_repeat('a', 500000), 'a', repeat('x', 15000000))".to_owned(),
        format!("SELECT {} FROM numbers", (0..100).map(|n| format!("repeat(word, {})", 3_000 + n)).collect::<Vec<_>>().join(", ")),
        "SELECT array_repeat(make_array(CASE WHEN id = 1 THEN repeat('x', 10000000) ELSE '' END), CASE WHEN id = 1 THEN 50000 ELSE 0 END) FROM numbers".to_owned(),
        format!("SELECT {}word{} FROM numbers", "coalesce(".repeat(40), ", 'a')".repeat(40)),
        format!("SELECT id FROM numbers WHERE id BETWEEN 1 AND 2{}", " BETWEEN false AND true".repeat(40)),
        {
            let next = |n: usize| format!(", q{} AS (SELECT x + x AS x FROM q{n})", n + 1);
            let queries: String = (0..40).map(next).collect();
            format!("WITH q0 AS (SELECT id AS x FROM numbers){queries} SELECT * FROM q40 WHERE x > 0")
        },
        format!("SELECT {}* FROM numbers", "*, ".repeat(1_000)),
        doubled("x || x"),
        doubled("concat(x, x)"),
        doubled("concat_ws(x, x, x)"),
        doubled("replace(x, 'o', x)"),
        doubled("array_to_string(array_concat(string_to_array(x, NULL), string_to_array(x, NULL)), '')"),
        doubled("array_to_string(string_to_array(x, NULL) || string_to_array(x, NULL), '')"),
    ] {
        let error = fixture.error(&ann, &sql).await;
        let kinds = [ErrorKind::Memory, ErrorKind::TooComplex];
        assert!(kinds.contains(&error.kind), "{error:?}: {sql}");
    }
}

#[tokio::test]
async fn a_long_text_is_repeated_for_few_rows_at_a_time() {
    let (fixture, ann) = Fixture::with_ann().await;
    let long = "x".repeat(900_000);
    let sql = format!("SELECT '{long}' AS x FROM numbers ORDER BY id LIMIT 100");
    let batches = fixture.rows(&ann, &sql).await.unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 18));
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 100);
}

#[tokio::test]
async fn functions_with_bounds_answer_as_without() {
    let (fixture, ann) = Fixture::with_ann().await;
    let plain = datafusion::prelude::SessionContext::new();
    let path = &fixture.tables().locations["numbers"].location;
    plain.register_parquet("numbers", path, Default::default()).await.unwrap();
    for expression in [
        "repeat(word, 3)",
        "repeat(word, id % 4 - 1)",
        "lpad(word, 8, 'xy') || rpad(word, id % 9)",
        "replace(word, 'e', 'éé') || word || id",
        "word || NULL",
        "'a' || 'b' || word",
        "word || CASE WHEN id % 2 = 0 THEN word END",
        "regexp_replace(repeat(word, 100), '(.)(.)', '\\2\\1', 'g')",
        "range(id % 5)",
        "generate_series(DATE '2024-01-01', DATE '2024-03-01', INTERVAL '1 month')",
        "array_repeat(word, 2) || ARRAY['x']",
        "array_resize(ARRAY[id], 3, 7)",
        "concat(word, NULL, id) || concat_ws('-', word, NULL, 'x')",
        "array_to_string(string_to_array(word, 'e'), ',')",
        "strpos(word, 'e') + levenshtein(word, 'three')",
        "translate(word, 'eo', 'xy')",
        "regexp_like(word, word) OR regexp_like(word, 't.*')",
        "regexp_count(word, substr(word, 1, 1))",
        "array_has_all(ARRAY[id, 1], ARRAY[1])",
    ] {
        let sql = format!("SELECT {expression} FROM numbers ORDER BY id LIMIT 700");
        let answer = fixture.rows(&ann, &sql).await.unwrap();
        let expected = plain.sql(&sql).await.unwrap().collect().await.unwrap();
        let [answer, expected] =
            [answer, expected].map(|rows| pretty_format_batches(&rows).unwrap().to_string());
        assert!(answer == expected, "{expression}");
        let fold = format!("SELECT {}", expression.replace("word", "'three'").replace("id", "6"));
        let answer = fixture.rows(&ann, &fold).await.unwrap();
        let expected = plain.sql(&fold).await.unwrap().collect().await.unwrap();
        let value = |rows: &[arrow::array::RecordBatch]| format!("{:?}", rows[0].column(0));
        assert_eq!(value(&answer), value(&expected), "{fold}");
    }
}
