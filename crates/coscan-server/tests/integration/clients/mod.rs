//! Clients of other projects, in Python (psycopg, asyncpg, the ADBC drivers for PostgreSQL and Flight SQL, ConnectorX,
//! pandas, polars, SQLAlchemy; `deltalake`, which writes a table that the server reads) and in Java (the JDBC drivers for PostgreSQL and Flight SQL). `./install` gets them, so
//! these tests run only on request: `cargo test --workspace --test integration -- --ignored clients`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::PASSWORD;
use crate::support::server::{Running, certificate, start_as};
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;
use tokio::process::Command;

/// A test that takes longer hangs.
const HANG: Duration = Duration::from_secs(300);

/// A column of each type, with a row of values, one of other values and one of NULLs.
const KINDS: &str = "
    SELECT arrow_cast(column1, 'Int16') AS small, arrow_cast(column2, 'Int32') AS whole, column3 AS large,
           arrow_cast(column4, 'Float32') AS single, arrow_cast(column4 / -15, 'Float64') AS double,
           arrow_cast(column5, 'Decimal128(10, 2)') AS amount, column6 AS word, CAST(column7 AS TIMESTAMP)::date AS day,
           arrow_cast(column7, 'Timestamp(Microsecond, None)') AS moment,
           arrow_cast(column8, 'Timestamp(Microsecond, Some(\"UTC\"))') AS instant, column9 AS yes,
           arrow_cast(decode(column10, 'hex'), 'Binary') AS bytes, column11 AS list
    FROM (VALUES
        (7, -70000, 5000000000, 1.5, '-1234.50', 'é, a text of more than twelve bytes', '2024-02-29T12:34:56.789',
         '2024-02-29T12:34:56+02:00', true, '00ff', ['a', NULL, 'b']),
        (0, 0, -1, 0.0, '0', '', '1969-12-31T23:59:59', '1969-12-31T23:59:59Z', false, '',
         arrow_cast([], 'List(Utf8)')),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL))";

/// Two servers with the same tables, one of them with a certificate.
struct Servers {
    plain: Running,
    tls: Running,
    _kinds: TempDir,
}

impl Servers {
    /// `delta` is the directory of a Delta table, if there is one.
    async fn start(delta: Option<&Path>) -> Self {
        let kinds = tempfile::tempdir().unwrap();
        let file = kinds.path().join("kinds.parquet").display().to_string();
        let rows = SessionContext::new().sql(KINDS).await.unwrap();
        rows.write_parquet(&file, DataFrameWriteOptions::new(), None).await.unwrap();
        let server = async |is_encrypted: bool| {
            start_as(|config, directory| {
                config.tables.insert("kinds".to_owned(), file.clone().into());
                let delta = delta.map(|delta| delta.display().to_string().into());
                config.tables.extend(delta.map(|delta| ("delta".to_owned(), delta)));
                config.listen.flight = Some("127.0.0.1:0".parse().unwrap());
                config.tls = is_encrypted.then(|| certificate(directory));
            })
            .await
        };
        let (plain, tls) = (server(false).await, server(true).await);
        Self { plain, tls, _kinds: kinds }
    }

    fn certificate(&self) -> String {
        self.tls.tables.directory.path().join("c.pem").display().to_string()
    }
}

/// A server whose database root may change, in the directory `database` of its files.
async fn start_with_database() -> Running {
    start_as(|config, directory| {
        config.database = Some(directory.join("database"));
        let users = config.users_file.as_ref().unwrap();
        let root = "[users.\"root\"]\n";
        let text = std::fs::read_to_string(users).unwrap();
        std::fs::write(users, text.replace(root, &format!("{root}writes = \"*\"\n"))).unwrap();
    })
    .await
}

/// The directory of these tests.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/clients")
}

/// Runs a command, which must succeed.
async fn run(command: &mut Command) {
    let output = tokio::time::timeout(HANG, command.kill_on_drop(true).output()).await;
    let output = output.expect("the clients end").unwrap();
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&printed));
}

/// Installs the clients of a language unless they are installed. Returns their directory.
async fn install(language: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    run(Command::new(here().join("install")).arg(language).arg(&directory)).await;
    directory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Python and packages"]
async fn python() {
    let installed = install("python").await;
    let delta = tempfile::tempdir().unwrap();
    let program = here().join("test_delta.py");
    run(Command::new(installed.join("venv/bin/python")).arg(program).arg(delta.path())).await;
    let servers = Servers::start(Some(delta.path())).await;
    let changed = start_with_database().await;
    let (plain, tls) = (&servers.plain.server, &servers.tls.server);
    let pytest = installed.join("venv/bin/pytest");
    run(Command::new(pytest)
        .args(["-q", "--maxfail=30", "-p", "no:cacheprovider"])
        .arg(here())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("DELTA_DIRECTORY", delta.path())
        .env("DATABASE_PORT", changed.at.port().to_string())
        .env("DATABASE_DIRECTORY", changed.tables.directory.path().join("database"))
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", servers.plain.at.port().to_string())
        .env("PGDATABASE", "coscan")
        .env("PGPASSWORD", PASSWORD)
        .env("FLIGHT_URL", format!("grpc://{}", plain.flight.unwrap()))
        .env("TLS_PORT", servers.tls.at.port().to_string())
        .env("FLIGHT_TLS_URL", format!("grpc+tls://localhost:{}", tls.flight.unwrap().port()))
        .env("CERTIFICATE", servers.certificate()))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK, Maven and packages"]
async fn java() {
    let installed = install("java").await;
    let servers = Servers::start(None).await;
    let classes = tempfile::tempdir().unwrap();
    let sources = ["Check.java", "FlightJdbc.java", "PostgresJdbc.java"];
    run(Command::new("javac")
        .arg("-d")
        .arg(classes.path())
        .args(sources.map(|source| here().join(source))))
    .await;
    let certificate = servers.certificate();
    let postgres = |port: u16| format!("jdbc:postgresql://localhost:{port}/coscan");
    let (port, tls) = (servers.plain.at.port(), servers.tls.at.port());
    let encrypted = format!("{}?sslmode=verify-full&sslrootcert={certificate}", postgres(tls));
    let path = format!("{}:{}/jars/*", classes.path().display(), installed.display());
    let java = |class: &str, urls: [&str; 2]| {
        let mut java = Command::new("java");
        java.args(["--add-opens=java.base/java.nio=ALL-UNNAMED", "-Duser.timezone=UTC", "-cp"]);
        java.args([path.as_str(), class, urls[0], PASSWORD, urls[1]]);
        java
    };
    run(&mut java("PostgresJdbc", [&postgres(port), &encrypted])).await;
    let flight = |port: u16| format!("jdbc:arrow-flight-sql://localhost:{port}/");
    let (plain, tls) =
        (servers.plain.server.flight.unwrap().port(), servers.tls.server.flight.unwrap().port());
    let plain = format!("{}?useEncryption=false", flight(plain));
    let encrypted = format!("{}?tlsRootCerts={certificate}", flight(tls));
    run(&mut java("FlightJdbc", [&plain, &encrypted])).await;
}
