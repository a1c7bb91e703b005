//! Errors, and calls that are not supported.

use arrow_flight::Action;
use futures::TryStreamExt;
use tonic::Code;

use crate::flight::client::{all, code, error, login, request, start_with_ann};
use crate::support::ROWS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_codes_of_grpc() {
    let (running, mut client) = start_with_ann().await;
    for (sql, expected) in [
        ("SELEC 1", Code::InvalidArgument),
        ("SELECT nothing FROM numbers", Code::InvalidArgument),
        ("SELECT * FROM secrets", Code::NotFound),
        ("SET coscan.weight = 99", Code::InvalidArgument),
        ("DROP TABLE numbers", Code::PermissionDenied),
        ("SELECT 1; SELECT 2", Code::InvalidArgument),
        ("SELECT $1::int", Code::InvalidArgument),
    ] {
        assert_eq!(code(&error(&mut client, sql).await), expected, "{sql}");
    }
    // The error occurs while rows are sent.
    let info =
        client.execute("SELECT 1 / (id - 20000) FROM numbers".to_owned(), None).await.unwrap();
    let failed = match client.do_get(info.endpoint[0].ticket.clone().unwrap()).await {
        Ok(rows) => rows.try_collect::<Vec<_>>().await.unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(failed.to_lowercase().contains("divide by zero"), "{failed}");
    // Tickets are valid for their users only.
    let mut bob = login(&running, "bob").await;
    let info = bob.execute("SELECT * FROM secrets".to_owned(), None).await.unwrap();
    let refused =
        client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| ()).unwrap_err();
    assert_eq!(code(&refused), Code::NotFound);
    assert_eq!(all(&mut bob, &info).await.num_rows() as i64, ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_served_says_so() {
    let (_running, mut client) = start_with_ann().await;
    let begin = client.begin_transaction().await.unwrap_err();
    assert_eq!(code(&begin), Code::Unimplemented);
    assert!(begin.to_string().contains("send BEGIN as a statement"), "{begin}");
    let update = client.execute_update("SELECT 1".to_owned(), None).await.unwrap_err();
    assert_eq!(code(&update), Code::Unimplemented);
    let insert =
        client.execute_update("INSERT INTO numbers VALUES (1, 'a')".to_owned(), None).await;
    assert_eq!(code(&insert.unwrap_err()), Code::PermissionDenied);
    let in_transaction = client.execute("SELECT 1".to_owned(), Some("t".into())).await.unwrap_err();
    assert_eq!(code(&in_transaction), Code::Unimplemented);
    let other =
        client.do_action(request(&client, Action::new("Dance", ""))).await.map(|_| ()).unwrap_err();
    assert_eq!(code(&other), Code::Unimplemented);
}
