//! Tables on S3 with credentials in `CREATE EXTERNAL TABLE`. The credentials work for that table only, and are never
//! shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use coscan_datafusion::{CoscanOptions, QueryError};
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use coscan_storage::stores::{StoreOptions, Stores};
use coscan_testing::s3::{BUCKET, KEY_ID, S3Server, SECRET};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::support::{explain, file_of, manager, numbers, plain, run};

const SELECTIVE: &str = "SELECT id, text FROM numbers WHERE id BETWEEN 20100 AND 20101";

const FILE: &str = "numbers/1.parquet";

async fn server() -> S3Server {
    let server = S3Server::start().await;
    server.put(FILE, file_of(&numbers(0..50_000), 10_000));
    server
}

fn session(manager: &BufferManager, stores: &Stores) -> SessionContext {
    let context = plain();
    CoscanOptions::new(manager).with_stores(stores.clone()).install(&context).unwrap();
    context
}

/// The stores of a session if the environment variables describe the server.
fn with_options(stores: &Stores, options: BTreeMap<String, String>) -> Stores {
    stores.with_options(StoreOptions::new(options).unwrap())
}

/// A session whose queries may name files.
fn naming_session(manager: &BufferManager, stores: &Stores) -> SessionContext {
    let context = coscan_datafusion::enable_url_table(plain());
    let coscan = CoscanOptions::new(manager).with_stores(stores.clone()).with_direct_bytes_max(0);
    coscan.install(&context).unwrap();
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
    let server = server().await;
    let context = session(&manager(PolicyKind::Relevance), &Stores::new());
    run(&context, &create(&server.options())).await;
    assert_eq!(run(&context, "SELECT count(*), sum(id) FROM numbers").await, ["50000 1249975000"]);
    assert_eq!(run(&context, SELECTIVE).await, ["20100 text 20100", "20101 text 20101"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_one_session_serve_no_other() {
    let server = server().await;
    let (manager, stores) = (manager(PolicyKind::Relevance), Stores::new());
    let with = session(&manager, &stores);
    run(&with, &create(&server.options())).await;
    // This query is left to the engine, which finds stores by their URL.
    assert_eq!(run(&with, SELECTIVE).await.len(), 2);
    let mut wrong = server.options();
    wrong.insert("aws.access_key_id".to_owned(), "AKIDOFNOBODY".to_owned());
    wrong.insert("aws.secret_access_key".to_owned(), "another-secret".to_owned());
    let shared = SessionContext::new_with_config_rt(SessionConfig::new(), with.runtime_env());
    CoscanOptions::new(&manager).with_stores(stores.clone()).install(&shared).unwrap();
    for other in [session(&manager, &stores), shared] {
        let error = error_of(&other, &create(&wrong)).await;
        assert!(error.contains("NotSignedUp"), "{error}");
        assert!(error.contains(BUCKET) && !error.contains("another-secret"), "{error}");
        let mut none = server.options();
        none.retain(|name, _| !name.contains("key"));
        none.insert("aws.skip_signature".to_owned(), "true".to_owned());
        let error = error_of(&other, &create(&none)).await;
        assert!(error.contains("those of aws.skip_signature"), "{error}");
    }
    let url = url::Url::parse(&format!("s3://{BUCKET}/")).unwrap();
    let (_, of_table) = with_options(&stores, server.options()).resolve(&url).unwrap();
    if let Ok(known) = with.runtime_env().object_store_registry.get_store(&url) {
        assert!(!Arc::ptr_eq(&known, &of_table), "the session knows the store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_session_prints_shows_a_secret() {
    let server = server().await;
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
    texts.push(format!("{:?}", CoscanOptions::of(context.state().config())));
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
        ("format.prunning", "prunning"),
        ("gcp.base_url", "gcp.base_url say nothing about s3:"),
    ] {
        let options = [(name.to_owned(), "a-value".to_owned())].into();
        let error = error_of(&context, &create(&options)).await;
        assert!(error.contains(expected) && !error.contains("a-value"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_name_files_of_any_store_and_share_them() {
    let server = server().await;
    let manager = manager(PolicyKind::Relevance);
    let stores = with_options(&Stores::new(), server.options());
    let s3 = format!("s3://{BUCKET}/{FILE}");
    for (location, stores) in [
        (s3.clone(), stores.clone()),
        (format!("s3://{BUCKET}/numbers/"), stores.clone()),
        (server.http(FILE), Stores::new()),
    ] {
        let context = naming_session(&manager, &stores);
        let sum = format!("SELECT sum(id + 1) FROM '{location}'");
        assert_eq!(run(&context, &sum).await, ["1250025000"], "{location}");
        let plan = explain(&context, &format!("EXPLAIN {sum}")).await;
        assert!(plan.contains("SharedScanExec"), "{location}: {plan}");
    }
    // Tables that are made of the file use its pages.
    let context = naming_session(&manager, &stores);
    run(&context, &format!("SELECT sum(id + 1) FROM '{s3}'")).await;
    context.register_parquet("registered", &s3, ParquetReadOptions::default()).await.unwrap();
    let sql = format!("CREATE EXTERNAL TABLE created STORED AS PARQUET LOCATION '{s3}'");
    run(&context, &sql).await;
    for table in ["registered", "created", &format!("'{s3}'")] {
        let sum = format!("EXPLAIN ANALYZE SELECT sum(id + 1) FROM {table}");
        let explained = explain(&context, &sum).await;
        assert!(explained.contains("bytes_read=0,"), "{table}: {explained}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_without_files_gives_a_plain_error() {
    let server = server().await;
    let manager = manager(PolicyKind::Relevance);
    let error = async |stores: &Stores, location: &str| {
        let sql = format!("SELECT * FROM '{location}'");
        let context = naming_session(&manager, stores);
        let error = match context.sql(&sql).await {
            Err(error) => error,
            Ok(frame) => frame.collect().await.unwrap_err(),
        };
        let text = QueryError::from(error).to_string();
        assert!(!text.contains("Generic") && !text.contains("performing"), "{text}");
        text
    };
    let known = with_options(&Stores::new(), server.options());
    let mut wrong = server.options();
    wrong.insert("aws.access_key_id".to_owned(), "AKIDOFNOBODY".to_owned());
    let wrong = with_options(&Stores::new(), wrong);
    let here = format!("s3://{BUCKET}/{FILE}");
    let refused = error(&wrong, &here).await;
    assert!(refused.starts_with(&format!("cannot read {here}: ")), "{refused}");
    assert!(refused.contains("403 Forbidden") && !refused.contains("AKID"), "{refused}");
    let missing = format!("s3://{BUCKET}/nothing.parquet");
    assert_eq!(error(&known, &missing).await, format!("{missing} does not exist. Check the URL"));
    let bucket = error(&known, "s3://nobodys-bucket/a.parquet").await;
    assert!(bucket.contains("404 Not Found: NoSuchBucket"), "{bucket}");
    let web = server.http(FILE).replace("numbers/1", "numbers/2");
    assert_eq!(error(&Stores::new(), &web).await, format!("{web} does not exist. Check the URL"));
    let scheme = error(&Stores::new(), "gopher://host/a").await;
    assert!(scheme.contains("no store is known for \"gopher:\""), "{scheme}");
}
