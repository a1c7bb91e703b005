//! Values of all types are sent as PostgreSQL sends them.

use crate::support::server::start_with_ann;
use crate::support::values::{Value, answer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_and_binary_forms_of_values_are_those_of_postgresql() {
    let (_running, client) = start_with_ann().await;
    let (mut wrong, mut count) = (Vec::new(), 0);
    for value in Value::all() {
        count += 1;
        let seen = answer(&client, &value.zone, &value.here).await;
        if seen.as_ref() != Ok(&value.answer) {
            wrong.push(format!("{}: {seen:?}, in PostgreSQL {:?}", value.here, value.answer));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count} values");
}
