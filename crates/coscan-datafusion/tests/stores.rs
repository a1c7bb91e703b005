//! Tables on S3 whose credentials come with `CREATE EXTERNAL TABLE`: they are read, they are of one table, and they do not
//! show.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::collections::BTreeMap;
use std::fs;

use coscan_datafusion::Coscan;
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::Stores;
use datafusion::prelude::{SessionConfig, SessionContext};

use support::s3::{BUCKET, KEY_ID, S3Server, SECRET};
use support::{manager, numbers, plain, run, write};

const SELECTIVE: &str = "SELECT id, text FROM numbers WHERE id BETWEEN 20100 AND 20101";

fn server() -> S3Server {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("numbers.parquet");
    write(&file, &numbers(0..50_000), 10_000);
    S3Server::start(fs::read(file).unwrap())
}

fn session(manager: &BufferManager, stores: &Stores) -> SessionContext {
    let context = plain();
    Coscan::new(manager).with_stores(stores.clone()).install(&context).unwrap();
    context
}

fn create(options: &BTreeMap<String, String>) -> String {
    let options: Vec<_> =
        options.iter().map(|(name, value)| format!("'{name}' '{value}'")).collect();
    format!(
        "CREATE EXTERNAL TABLE numbers STORED AS PARQUET LOCATION 's3://{BUCKET}/numbers/' OPTIONS ({})",
        options.join(", ")
    )
}

async fn error_of(context: &SessionContext, sql: &str) -> String {
    match context.sql(sql).await {
        Err(error) => error.to_string(),
        Ok(frame) => frame.collect().await.unwrap_err().to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_is_read_with_the_options_given() {
    let server = server();
    let context = session(&manager(PolicyKind::Relevance), &Stores::new());
    run(&context, &create(&server.options())).await;
    assert_eq!(run(&context, "SELECT count(*), sum(id) FROM numbers").await, ["50000 1249975000"]);
    assert_eq!(run(&context, SELECTIVE).await, ["20100 text 20100", "20101 text 20101"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_one_session_serve_no_other() {
    let server = server();
    let (manager, stores) = (manager(PolicyKind::Relevance), Stores::new());
    let with = session(&manager, &stores);
    run(&with, &create(&server.options())).await;
    // This one is left to the engine, which knows stores by their URL.
    assert_eq!(run(&with, SELECTIVE).await.len(), 2);
    let mut wrong = server.options();
    wrong.insert("aws.access_key_id".to_owned(), "AKIDOFNOBODY".to_owned());
    wrong.insert("aws.secret_access_key".to_owned(), "another-secret".to_owned());
    let shared = SessionContext::new_with_config_rt(SessionConfig::new(), with.runtime_env());
    Coscan::new(&manager).with_stores(stores.clone()).install(&shared).unwrap();
    for other in [session(&manager, &stores), shared] {
        let error = error_of(&other, &create(&wrong)).await;
        assert!(error.contains("AccessDenied"), "{error}");
        assert!(error.contains(BUCKET) && !error.contains("another-secret"), "{error}");
        let mut none = server.options();
        none.retain(|name, _| !name.contains("key"));
        none.insert("aws.skip_signature".to_owned(), "true".to_owned());
        let error = error_of(&other, &create(&none)).await;
        assert!(error.contains("those of aws.skip_signature"), "{error}");
    }
    let registry = &with.runtime_env().object_store_registry;
    let url = url::Url::parse(&format!("s3://{BUCKET}/")).unwrap();
    assert!(registry.get_store(&url).is_err(), "the session knows the store");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_session_prints_shows_a_secret() {
    let server = server();
    let context = session(&manager(PolicyKind::Relevance), &Stores::new());
    let create = create(&server.options());
    let mut texts = vec![run(&context, &format!("EXPLAIN {create}")).await.join(" ")];
    run(&context, &create).await;
    for sql in [
        "EXPLAIN VERBOSE SELECT sum(id) FROM numbers",
        "EXPLAIN ANALYZE VERBOSE SELECT sum(id) FROM numbers",
        &format!("EXPLAIN ANALYZE {SELECTIVE}"),
    ] {
        texts.push(run(&context, sql).await.join(" "));
    }
    let provider = context.table_provider("numbers").await.unwrap();
    texts.push(format!("{provider:?} {:?}", provider.get_table_definition()));
    texts.push(format!("{:?}", Coscan::of(context.state().config())));
    let mut wrong = server.options();
    wrong.insert("aws.region".to_owned(), "us-east-1".to_owned());
    texts.push(
        error_of(&context, &self::create(&wrong).replace("numbers STORED", "others STORED")).await,
    );
    for text in texts {
        assert!(!text.contains(SECRET) && !text.contains(KEY_ID), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_checked() {
    let context = session(&manager(PolicyKind::Relevance), &Stores::new());
    for (name, expected) in [
        ("aws.acess_key_id", "no option \"aws.acess_key_id\""),
        ("format.pruning", "does not obey the option format.pruning"),
        ("gcp.base_url", "gcp.base_url say nothing about s3:"),
    ] {
        let options = [(name.to_owned(), "a-value".to_owned())].into();
        let error = error_of(&context, &create(&options)).await;
        assert!(error.contains(expected) && !error.contains("a-value"), "{error}");
    }
}
