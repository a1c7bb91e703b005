//! Replicas of the tables of a server are read where they cost less, under the name and the grants of their table.

use arrow::array::AsArray;
use coscan_server::config::Config;
use coscan_server::queries::ErrorKind;
use coscan_server::sql::SqlServiceError;

use crate::sql::fixture::Fixture;
use crate::support::ROWS;

const BY_WORD: &str = "SELECT count(id) FROM numbers WHERE word = 'word 0'";

/// The physical plan.
async fn explain(fixture: &Fixture, user: &str, sql: &str) -> String {
    let session = fixture.login(user).await;
    let rows = fixture.rows(&session, &format!("EXPLAIN {sql}")).await.unwrap();
    let plans = rows
        .iter()
        .map(|batch| arrow::compute::cast(batch.column(1), &arrow::datatypes::DataType::Utf8));
    let plans: Vec<_> = plans.map(Result::unwrap).collect();
    let plans = plans.iter().flat_map(|plans| plans.as_string::<i32>().iter().flatten());
    plans.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_query_reads_the_replica_under_the_name_of_the_table() {
    let fixture = Fixture::with_replica().await;
    let ann = fixture.login("ann").await;
    let plan = explain(&fixture, "ann", BY_WORD).await;
    assert!(plan.contains("table=numbers") && plan.contains("replica=numbers_by_word ("), "{plan}");
    let other = explain(&fixture, "ann", "SELECT count(word) FROM numbers WHERE id < 100").await;
    assert!(!other.contains("replica=numbers_by_word"), "{other}");
    assert_eq!(fixture.number(&ann, BY_WORD).await, (ROWS + 6) / 7);
    // There is one table, with one name.
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(fixture.number(&ann, tables).await, 1);
    let path = fixture.tables().directory.path().join("numbers_by_word.parquet");
    for table in ["numbers_by_word".to_owned(), format!("'{}'", path.display())] {
        let error = fixture.error(&ann, &format!("SELECT * FROM {table}")).await;
        let kinds = [ErrorKind::UnknownTable, ErrorKind::Syntax];
        assert!(kinds.contains(&error.kind), "{table}: {error:?}");
    }
}

#[tokio::test]
async fn a_replica_needs_the_grant_of_its_table() {
    let fixture = Fixture::with_replica().await;
    let mut locations = fixture.tables().locations.clone();
    let replicas = std::mem::take(&mut locations.get_mut("numbers").unwrap().replicas);
    // These are the same files, so that `secrets` has the rows of `numbers`.
    locations.get_mut("secrets").unwrap().replicas = replicas;
    fixture.service.open_tables(&locations).await.unwrap();
    let of_secrets = BY_WORD.replace("numbers", "secrets");
    let ann = fixture.login("ann").await;
    assert_eq!(fixture.error(&ann, &of_secrets).await.kind, ErrorKind::UnknownTable);
    assert_eq!(
        fixture.error(&ann, &format!("EXPLAIN {of_secrets}")).await.kind,
        ErrorKind::UnknownTable
    );
    assert!(!explain(&fixture, "ann", BY_WORD).await.contains("replica"));
    let plan = explain(&fixture, "bob", &of_secrets).await;
    assert!(plan.contains("table=secrets") && plan.contains("replica=numbers_by_word ("), "{plan}");
}

#[tokio::test]
async fn a_replica_that_does_not_fit_is_named_and_the_tables_stay() {
    let fixture = Fixture::with_replica().await;
    let few = fixture.tables().write("few", |rows| rows.slice(0, 10));
    for (replica, parts) in [
        (few, ["table numbers: ", "replica few has 10 rows", "30000"]),
        ("/nowhere/x.parquet".to_owned(), ["table numbers: ", "/nowhere/x.parquet", ""]),
    ] {
        let Err(SqlServiceError::Tables(errors)) = fixture.open_with(replica).await else {
            panic!()
        };
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    assert!(explain(&fixture, "ann", BY_WORD).await.contains("replica=numbers_by_word ("));
}

#[test]
fn a_configuration_names_replicas() {
    let config: Config = toml::from_str(
        "[tables]\na = 'x/'\nb = { location = 'y/', replicas = ['z/', 'w/*.parquet'] }\n[tables.c]\nlocation = 'v'",
    )
    .unwrap();
    let tables: Vec<_> = config.tables.values().map(|table| table.location.as_str()).collect();
    assert_eq!(tables, ["x/", "y/", "v"]);
    assert_eq!(config.tables["b"].replicas, ["z/", "w/*.parquet"]);
    assert!(config.tables["a"].replicas.is_empty() && config.tables["c"].replicas.is_empty());
    for wrong in ["a = 1", "a = { replicas = ['x'] }", "a = { location = 'x', replica = 'y' }"] {
        let error = toml::from_str::<Config>(&format!("[tables]\n{wrong}")).unwrap_err();
        assert!(error.to_string().contains("`location` and `replicas`"), "{wrong}: {error}");
    }
}
