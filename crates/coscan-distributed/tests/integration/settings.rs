//! The settings of a session, as the tasks of its queries see them.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use coscan_datafusion::SessionSettings;
use datafusion::arrow::array::AsArray;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::cluster::{TestCluster, TestOptions};
use crate::data::{sorted_rows, tpch_session};

/// `settings(x)`: the settings where it is evaluated, as lines, for each value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShowSettings(Signature);

impl ShowSettings {
    fn udf() -> ScalarUDF {
        ScalarUDF::from(Self(Signature::any(1, Volatility::Volatile)))
    }
}

impl ScalarUDFImpl for ShowSettings {
    fn name(&self) -> &'static str {
        "settings"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let settings = arguments.config_options.entries().into_iter();
        let settings =
            settings.map(|entry| format!("{}={}", entry.key, entry.value.unwrap_or_default()));
        let settings: Vec<_> = settings.collect();
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(settings.join("\n")))))
    }
}

/// Settings that a query cannot have: it would not be planned, or not over workers; or they are set where it is planned.
const NOT_CHANGED: [&str; 11] = [
    "coscan.sharing",
    "datafusion.catalog.create_default_catalog_and_schema",
    "datafusion.catalog.default_catalog",
    "datafusion.catalog.default_schema",
    "datafusion.catalog.format",
    "datafusion.catalog.location",
    "datafusion.execution.target_partitions",
    "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery",
    "datafusion.optimizer.max_passes",
    "datafusion.optimizer.skip_failed_rules",
    "datafusion.execution.parquet.encryption",
];

/// Values to try, until one is another than the default.
const VALUES: [&str; 14] = [
    "true", "false", "7", "16384", "0.5", "8K", "UTC", "Postgres", "gzip", "2.0", "zstd(3)", "on",
    "5s", "text",
];

/// A value other than the default, if a setting can have one of those above.
fn other_value(key: &str, default: Option<&str>) -> Option<&'static str> {
    VALUES.into_iter().find(|value| {
        let mut config = config();
        let is_set = config.options_mut().set(key, value).is_ok();
        let now = entries(&config).remove(key).flatten();
        is_set && now.as_deref() != default && now.is_some()
    })
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new();
    SessionSettings::add_to(&mut config);
    config
}

fn entries(config: &SessionConfig) -> BTreeMap<String, Option<String>> {
    let entries = config.options().entries().into_iter();
    entries.map(|entry| (entry.key, entry.value)).collect()
}

/// The settings that a task of a query sees.
async fn in_a_task(cluster: &TestCluster, session: &SessionContext) -> BTreeMap<String, String> {
    let sql = "SELECT l_returnflag, max(settings(l_orderkey)) FROM lineitem GROUP BY l_returnflag";
    let rows = cluster.query(session, sql).await.unwrap();
    let settings = rows[0].column(1).as_string::<i32>().value(0).to_owned();
    settings
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_setting_is_the_same_in_a_task() {
    let cluster = TestCluster::start_with(&TestOptions::small(2), |state| {
        state.register_udf(ShowSettings::udf().into())?;
        Ok(())
    });
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    session.register_udf(ShowSettings::udf());
    let mut changed = BTreeMap::new();
    let mut unchanged = Vec::new();
    for (key, default) in entries(&config()) {
        if NOT_CHANGED.contains(&key.as_str()) {
            continue;
        }
        let Some(value) = other_value(&key, default.as_deref()) else {
            unchanged.push(key);
            continue;
        };
        // Together they may not plan, so each is set alone.
        let state = session.state_ref();
        let before = state.read().config().options().as_ref().clone();
        let set = state.write().config_mut().options_mut().set(&key, value);
        set.unwrap();
        let now = entries(state.read().config()).remove(&key).flatten().unwrap_or_default();
        let there = in_a_task(&cluster, &session).await;
        changed.insert(key.clone(), (now, there.get(&key).cloned().unwrap_or_default()));
        *state.write().config_mut().options_mut() = before;
    }
    let lost: Vec<_> = changed.iter().filter(|(_, (here, there))| here != there).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    assert!(changed.len() > 100, "{}: {unchanged:?}", changed.len());
    assert!(unchanged.len() < 10, "{unchanged:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn functions_have_the_time_zone_of_the_session() {
    let cluster = TestCluster::start(&TestOptions::small(2));
    let session = tpch_session(4, Some(&cluster.coscan)).await;
    let set = "SET datafusion.execution.time_zone = '+05:00'";
    session.sql(set).await.unwrap().collect().await.unwrap();
    let sql = "SELECT l_returnflag, max(to_timestamp_millis(l_orderkey)) \
               FROM lineitem GROUP BY l_returnflag";
    let alone = session.sql(sql).await.unwrap().collect().await.unwrap();
    assert_eq!(sorted_rows(&cluster.query(&session, sql).await.unwrap()), sorted_rows(&alone));
}
