//! Parameters, values and settings of statements.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use coscan_server::config::Limits;
use coscan_server::queries::ErrorKind;
use coscan_server::sql::Sql;
use datafusion::common::{ParamValues, ScalarValue};
use futures::TryStreamExt;

use crate::sql::fixture::Fixture;

#[tokio::test]
async fn values_are_bounded_with_each_mention_of_their_parameter() {
    let (fixture, ann) = Fixture::with_ann().await;
    let mentions = |count| vec!["$1"; count].join(", ");
    let value = || vec![ScalarValue::from("x".repeat(1 << 20).as_str())];
    for (count, is_right) in [(10, true), (100, false)] {
        let sql = format!("SELECT id FROM numbers WHERE word IN ({})", mentions(count));
        let planned = fixture.service.plan(&ann, Sql::Text(&sql)).await.unwrap();
        let bound = planned.bind(value()).map(|bound| bound.bytes() > 10 << 20);
        let ran =
            fixture.service.run(&ann, planned, ParamValues::from(value())).await.map(|_| true);
        for outcome in [bound, ran] {
            let kind = outcome.map_err(|error| error.kind);
            assert_eq!(
                kind,
                if is_right { Ok(true) } else { Err(ErrorKind::TooComplex) },
                "{count}"
            );
        }
    }
}

#[tokio::test]
async fn parameters_have_the_types_of_what_they_are_compared_with() {
    let (fixture, ann) = Fixture::with_ann().await;
    let sql = Sql::Text("SELECT count(*) FROM numbers WHERE id < $1 AND word = $2");
    let planned = fixture.service.plan(&ann, sql).await.unwrap();
    let types: Vec<_> = planned.parameters.iter().map(|field| field.as_ref().unwrap()).collect();
    assert_eq!(types.len(), 2);
    assert_eq!(types[0].data_type(), &DataType::Int64);
    let values = vec![ScalarValue::from(14_i64), ScalarValue::from("word 3")];
    for _ in 0..2 {
        let values = ParamValues::from(values.clone());
        let query = fixture.service.run(&ann, planned.clone(), values).await.unwrap();
        let batches: Vec<_> = query.try_collect().await.unwrap();
        assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 2);
    }
    let error = fixture.error(&ann, "SELECT $4000000000").await;
    assert_eq!(error.kind, ErrorKind::Syntax);
    assert!(fixture.rows(&ann, "SELECT id FROM numbers WHERE id = $1").await.is_err());
}

#[tokio::test]
async fn settings_hold_for_their_session_only() {
    let fixture = Fixture::new(Limits::default()).await;
    let (one, two) = (fixture.login("root").await, fixture.login("root").await);
    assert!(fixture.rows(&one, "SET coscan.weight = 3").await.unwrap().is_empty());
    let shown = fixture.rows(&one, "SHOW coscan.weight").await.unwrap();
    assert_eq!(shown[0].column(0).as_string::<i32>().value(0), "3");
    let shown = fixture.rows(&two, "SHOW coscan.weight").await.unwrap();
    assert_eq!(shown[0].column(0).as_string::<i32>().value(0), "1");
    fixture.rows(&one, "SET TIME ZONE 'Europe/Amsterdam'").await.unwrap();
    fixture.rows(&one, "SET statement_timeout TO '1min'").await.unwrap();
    fixture.rows(&one, "RESET ALL").await.unwrap();
    let all = fixture.rows(&one, "SHOW ALL").await.unwrap();
    assert!(all[0].num_rows() > 10);
}
