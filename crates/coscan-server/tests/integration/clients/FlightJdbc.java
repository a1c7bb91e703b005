import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.List;

/** The Flight SQL JDBC driver. Arguments: URL, password, URL with TLS. */
public final class FlightJdbc {
    private FlightJdbc() {}

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        String password = arguments[1];
        Check.run("login", () -> Check.fails("wrong user or password", () -> {
            try (Connection connection = Check.connect(url, "ann", "wrong")) {
                Check.number(connection, "SELECT 1");
            }
        }));
        Check.run("grants", () -> Check.grants(url, password));
        Check.run("encryption", () -> {
            try (Connection connection = Check.connect(arguments[2], "bob", password)) {
                Check.equal(Check.number(connection, "SELECT 1"), 1L);
            }
        });
        try (Connection connection = Check.connect(url, "bob", password)) {
            Check.run("types", () -> Check.kinds(connection));
            Check.run("parameters", () -> parameters(connection));
            Check.run("errors", () -> Check.errors(connection));
            Check.run("limits", () -> limits(connection));
            Check.run("rows", () -> rows(connection));
            Check.run("metadata", () -> metadata(connection.getMetaData()));
        }
        System.out.println("all is well");
    }

    static void parameters(Connection connection) throws SQLException {
        Check.compare(connection, "whole > ?", -1, 1);
        Check.compare(connection, "large = ?", 5_000_000_000L, 1);
        Check.compare(connection, "double = ?", -0.1, 1);
        Check.compare(connection, "amount = ?", new BigDecimal("-1234.50"), 1);
        Check.compare(connection, "word = ?", "", 1);
        Check.compare(connection, "word = '' AND yes = ?", false, 1);
        Check.compare(connection, "day = ?", Date.valueOf("2024-02-29"), 1);
        Check.compare(connection, "moment = ?", Timestamp.valueOf("2024-02-29 12:34:56.789"), 1);
        try (PreparedStatement statement = connection.prepareStatement("SELECT ?::bigint + ?, '?'")) {
            statement.setLong(1, 40);
            statement.setLong(2, 2);
            try (ResultSet row = statement.executeQuery()) {
                Check.that(row.next() && row.getLong(1) == 42, "another sum");
                Check.equal(row.getString(2), "?");
            }
        }
    }

    static void limits(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET statement_timeout = '200ms'");
            String seen = "no error";
            try {
                Check.count(statement.executeQuery(Check.LONG));
            } catch (RuntimeException error) { // While rows come, the driver passes on what gRPC says.
                seen = error.toString();
            }
            Check.that(seen.contains("TIMED_OUT") && seen.contains("statement_timeout"), seen);
            statement.execute("SET statement_timeout = 0");
        }
        Check.equal(Check.number(connection, "SELECT 1"), 1L);
    }

    static void rows(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            long sum = 0;
            try (ResultSet row = statement.executeQuery("SELECT id, word FROM numbers")) {
                while (row.next()) {
                    Check.equal(row.getString(2), "word " + row.getLong(1) % 7);
                    sum += row.getLong(1);
                }
            }
            Check.equal(sum, Check.ROWS * (Check.ROWS - 1L) / 2);
        }
    }

    static void metadata(DatabaseMetaData metadata) throws SQLException {
        Check.equal(metadata.getDatabaseProductName(), "coscan");
        Check.that(metadata.isReadOnly(), "not read-only");
        Check.equal(metadata.getIdentifierQuoteString(), "\"");
        String[] types = {"TABLE"};
        Check.equal(
            Check.column(metadata.getTables(null, "public", "num%", types), "TABLE_NAME"), List.of("numbers"));
        Check.equal(
            Check.column(metadata.getColumns(null, "public", "numbers", null), "COLUMN_NAME"), List.of("id", "word"));
        Check.equal(Check.count(metadata.getPrimaryKeys(null, "public", "numbers")), 0);
        Check.that(Check.column(metadata.getSchemas(), "TABLE_SCHEM").contains("public"), "no schema");
    }
}
