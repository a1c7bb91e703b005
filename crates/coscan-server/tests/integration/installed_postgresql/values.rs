//! The stored answers for the comparison of values equal those of PostgreSQL.

use crate::installed_postgresql::installed::PostgreSql;
use crate::support::values::{Value, answer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn the_stored_answers_are_those_of_postgresql() {
    let server = PostgreSql::start().await;
    let client = server.connect().await;
    let mut wrong = Vec::new();
    for value in Value::all() {
        let seen = answer(&client, &value.zone, &value.in_postgresql).await;
        if seen.as_ref() != Ok(&value.answer) {
            wrong.push(format!("{}: {seen:?}, stored is {:?}", value.in_postgresql, value.answer));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
