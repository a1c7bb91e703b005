//! Queries that end before their results do: cancelled, dropped, stalled, stopped.

use std::time::Duration;

use arrow_flight::error::FlightError;
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo,
};
use coscan_server::Stopped;
use coscan_server::queries::QueryState;
use futures::TryStreamExt;
use prost::Message;

use crate::flight::client::{
    Client, LONG, drained, fetch, login, query, request, start, start_flight, start_with_ann,
};
use crate::support::{HANG, ROWS, in_time};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_cancelled_while_it_streams_as_often_as_one_likes() {
    let (_running, mut client) = start_with_ann().await;
    let info = client.execute(LONG.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut client, &info).await;
    rows.try_next().await.unwrap().unwrap();
    for _ in 0..2 {
        assert_eq!(cancel(&mut client, &info).await, CancelStatus::Cancelled);
    }
    let reading = async {
        loop {
            match rows.try_next().await {
                Ok(batch) => assert!(batch.is_some(), "it never ends by itself"),
                Err(error) => break error.to_string(),
            }
        }
    };
    let ended = in_time(reading).await;
    assert!(ended.contains("cancelled"), "{ended}");
    // The query does not start again.
    let again = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| ());
    assert!(again.unwrap_err().to_string().contains("cancelled"));
    query(&mut client, "SELECT count(*) FROM numbers").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_result_frees_its_slot() {
    let running = start_flight(|config| config.limits.queries_running = 1).await;
    let mut client = login(&running, "ann").await;
    for _ in 0..3 {
        let info = client.execute(LONG.to_owned(), None).await.unwrap();
        let mut rows = fetch(&mut client, &info).await;
        rows.try_next().await.unwrap().unwrap();
        drop(rows);
        drained(&running).await;
    }
    // A waiting query leaves the queue when its client drops the request.
    let info = client.execute(LONG.to_owned(), None).await.unwrap();
    let _running = fetch(&mut client, &info).await;
    let mut other = login(&running, "bob").await;
    let queries = running.server.sql_service().queries();
    let waiting = tokio::spawn(async move { query(&mut other, "SELECT id FROM numbers").await });
    let seen = async {
        while queries.counts().1 == 0 {
            tokio::task::yield_now().await
        }
    };
    in_time(seen).await;
    waiting.abort();
    let gone = async {
        while queries.counts().1 > 0 {
            tokio::task::yield_now().await
        }
    };
    in_time(gone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_holds_little_and_not_for_ever() {
    let running =
        start_flight(|config| config.limits.result_stall_max = Duration::from_secs(3)).await;
    let mut client = login(&running, "ann").await;
    let info = client.execute(LONG.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut client, &info).await;
    rows.try_next().await.unwrap().unwrap();
    drained(&running).await;
    let reports = running.server.sql_service().queries().list();
    let report = reports.last().unwrap();
    assert_eq!(report.state, QueryState::Cancelled);
    assert!(report.rows < 1_000_000, "{} rows were made for a client that reads none", report.rows);
    let reading = async {
        while rows.try_next().await?.is_some() {}
        Ok::<_, FlightError>(())
    };
    let ended = in_time(reading).await.unwrap_err().to_string();
    assert!(ended.contains("result_stall_max"), "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_runs_when_the_server_stops_gives_all_its_rows() {
    let (running, mut client) = start_with_ann().await;
    // This is more than fits between the server and a client that does not read.
    let sql = "SELECT id, repeat(word, 500) FROM numbers";
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut client, &info).await;
    let mut count = rows.try_next().await.unwrap().unwrap().num_rows();
    let (server, tables) = (running.server, running.tables);
    let queries = std::sync::Arc::clone(server.sql_service().queries());
    assert_eq!(queries.counts(), (1, 0));
    let stopping = tokio::spawn(server.stop(HANG, std::future::pending()));
    let mut other = client.clone();
    let refused = async { while other.execute(sql.to_owned(), None).await.is_ok() {} };
    in_time(refused).await;
    while let Some(batch) = in_time(rows.try_next()).await.unwrap() {
        count += batch.num_rows();
    }
    assert_eq!(i64::try_from(count).unwrap(), ROWS);
    drop((client, other, rows));
    assert_eq!(in_time(stopping).await.unwrap(), Stopped::Gracefully);
    drop(tables);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_stops_though_clients_stay_connected() {
    let running = start().await;
    let mut idle = login(&running, "ann").await;
    let mut busy = login(&running, "ann").await;
    let info = busy.execute(LONG.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut busy, &info).await;
    rows.try_next().await.unwrap().unwrap();
    let stopping = running.server.stop(Duration::from_millis(1), std::future::pending());
    in_time(stopping).await;
    assert!(idle.get_catalogs().await.is_err());
}

async fn cancel(client: &mut Client, info: &FlightInfo) -> CancelStatus {
    let body = CancelFlightInfoRequest::new(info.clone()).encode_to_vec();
    let action = Action::new("CancelFlightInfo", body);
    let mut results = client.do_action(request(client, action)).await.unwrap();
    let result = results.try_next().await.unwrap().unwrap();
    CancelFlightInfoResult::decode(result.body).unwrap().status()
}
