//! Options of stores: their names, the stores they make, the sharing of stores, and hidden values.

use std::sync::Arc;

use coscan_storage::stores::{DirectFileStore, StoreError, StoreOptions, Stores};
use object_store::ObjectStore;
use url::Url;

const SECRET: &str = "s3cr3t-of-the-tests";

fn options(options: &[(&str, &str)]) -> Result<StoreOptions, StoreError> {
    StoreOptions::new(options.iter().map(|(name, value)| (name.to_string(), value.to_string())))
}

fn key(id: &str) -> StoreOptions {
    options(&[("aws.access_key_id", id), ("aws.secret_access_key", SECRET)]).unwrap()
}

fn resolve(stores: &Stores, url: &str) -> Result<Arc<dyn ObjectStore>, StoreError> {
    stores.resolve(&Url::parse(url).unwrap()).map(|(_, store)| store)
}

fn text_of(given: &[(&str, &str)], url: &str) -> String {
    let stores = Stores::new().with_options(options(given).unwrap());
    let error = resolve(&stores, url).unwrap_err();
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
    let text = error.to_string();
    assert!(!text.contains(SECRET), "{text}");
    text
}

#[test]
fn an_unknown_option_is_refused_by_name() {
    for name in
        ["aws.acess_key_id", "aws.", "aws.bucket", "azure.container_name", "s3.region", "region"]
    {
        let error = options(&[("aws.region", "eu-west-1"), (name, SECRET)]).unwrap_err();
        assert!(error.to_string().contains(&format!("no option \"{name}\"")), "{error}");
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
    assert!(StoreOptions::is_for_store("aws.acess_key_id"));
    assert!(!StoreOptions::is_for_store("format.compression"));
}

#[test]
fn the_names_of_datafusion_cli_are_known() {
    for name in [
        "aws.access_key_id",
        "aws.secret_access_key",
        "aws.session_token",
        "aws.region",
        "aws.endpoint",
        "aws.allow_http",
        "aws.skip_signature",
        "gcp.service_account_path",
        "gcp.service_account_key",
        "gcp.application_credentials_path",
        "azure.account_name",
        "azure.account_key",
        "azure.sas_token",
    ] {
        assert!(options(&[(name, "x")]).is_ok(), "{name}");
    }
}

#[test]
fn options_for_another_store_are_refused() {
    for (name, url) in [
        ("aws.region", "gs://bucket/"),
        ("gcp.base_url", "s3://bucket/"),
        ("aws.region", "az://container/"),
        ("aws.region", "file:///data/"),
        ("aws.region", "https://host/data/"),
    ] {
        let text = text_of(&[(name, "x")], url);
        assert!(text.contains(name) && text.contains(url.split_once("//").unwrap().0), "{text}");
    }
}

#[test]
fn stores_are_shared_by_equal_options_only() {
    let stores = Stores::new();
    let with = |options| resolve(&stores.with_options(options), "s3://bucket/a").unwrap();
    let first = with(key("one"));
    assert!(Arc::ptr_eq(&first, &with(key("one"))));
    assert!(!Arc::ptr_eq(&first, &with(key("two"))));
    assert!(!Arc::ptr_eq(&first, &resolve(&stores, "s3://bucket/a").unwrap()));
    let more = options(&[
        ("aws.access_key_id", "one"),
        ("aws.secret_access_key", SECRET),
        ("aws.region", "eu-west-1"),
    ]);
    assert!(!Arc::ptr_eq(&first, &with(more.unwrap())));
}

#[test]
fn roots_of_stores_differ_by_options() {
    let stores = Stores::new();
    let url = Url::parse("s3://bucket/a").unwrap();
    let root = |options| stores.with_options(options).resolve(&url).unwrap().0;
    let plain = stores.resolve(&url).unwrap().0;
    assert_eq!(plain.as_str(), "s3://bucket/");
    let one = root(key("one"));
    assert_eq!(one, root(key("one")));
    assert!(one != root(key("two")) && one != plain);
    assert!(one.as_str().starts_with("s3://bucket/#") && !one.as_str().contains("one"), "{one}");
}

#[test]
fn a_registered_store_is_not_used_with_options() {
    let stores = Stores::new();
    let registered: Arc<dyn ObjectStore> = Arc::new(DirectFileStore::new());
    stores.register(&Url::parse("s3://bucket/").unwrap(), Arc::clone(&registered));
    assert!(Arc::ptr_eq(&registered, &resolve(&stores, "s3://bucket/a").unwrap()));
    let own = resolve(&stores.with_options(key("one")), "s3://bucket/a").unwrap();
    assert!(!Arc::ptr_eq(&registered, &own));
    assert!(Arc::ptr_eq(&registered, &resolve(&stores, "s3://bucket/a").unwrap()));
}

#[test]
fn values_do_not_show() {
    let stores = Stores::new().with_options(key("AKIDONE"));
    resolve(&stores, "s3://bucket/").unwrap();
    let text = format!("{stores:?}");
    assert!(text.contains("aws.secret_access_key") && text.contains("s3://bucket/"), "{text}");
    assert!(!text.contains(SECRET) && !text.contains("AKIDONE"), "{text}");
}

#[test]
fn settings_that_do_not_work_say_what_to_set_and_show_nothing() {
    let azure = text_of(&[("azure.account_key", SECRET)], "az://container/a");
    assert!(azure.contains("AZURE_STORAGE_ACCOUNT_NAME"), "{azure}");
    let key = format!("\"{SECRET}\"");
    let google = text_of(&[("gcp.service_account_key", key.as_str())], "gs://bucket/a");
    assert!(google.contains("GOOGLE_SERVICE_ACCOUNT"), "{google}");
    let amazon = text_of(&[("aws.secret_access_key", SECRET)], "s3://bucket/a");
    assert!(amazon.contains("AWS_ACCESS_KEY_ID"), "{amazon}");
}

#[test]
fn unencrypted_requests_must_be_allowed() {
    let endpoint = ("aws.endpoint", "http://127.0.0.1:9000");
    let text = text_of(&[endpoint], "s3://bucket/a");
    assert!(text.contains("aws.endpoint") && text.contains("aws.allow_http to true"), "{text}");
    let allowed = options(&[endpoint, ("aws.allow_http", "true")]).unwrap();
    resolve(&Stores::new().with_options(allowed), "s3://bucket/a").unwrap();
}

#[test]
fn azure_containers_are_found_in_both_forms() {
    let named =
        options(&[("azure.account_name", "account"), ("azure.account_key", "a2V5")]).unwrap();
    resolve(&Stores::new().with_options(named), "az://container/a").unwrap();
    let key = options(&[("azure.account_key", "a2V5")]).unwrap();
    let url = "abfss://container@account.dfs.core.windows.net/a";
    resolve(&Stores::new().with_options(key), url).unwrap();
}

#[test]
fn a_password_in_a_url_is_refused_and_not_repeated() {
    for url in [
        "https://user:s3cr3t-of-the-tests@host/a",
        "s3://key:s3cr3t-of-the-tests@bucket/a",
        "s3://s3cr3t-of-the-tests@bucket/a",
        "abfss://container:s3cr3t-of-the-tests@account.dfs.core.windows.net/a",
    ] {
        let error = resolve(&Stores::new(), url).unwrap_err();
        assert!(matches!(error, StoreError::UserInUrl { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error:?}");
    }
}
