import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
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
            Check.run("errors", () -> Check.errors(connection));
            Check.run("rows", () -> rows(connection));
            Check.run("metadata", () -> metadata(connection.getMetaData()));
        }
        System.out.println("all is well");
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
