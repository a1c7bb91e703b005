import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.util.List;

/** The PostgreSQL JDBC driver. Arguments: URL, password, URL with TLS. */
public final class PostgresJdbc {
    private PostgresJdbc() {}

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        String password = arguments[1];
        Check.run("login", () -> Check.fails("password", () -> Check.connect(url, "ann", "wrong")));
        Check.run("grants", () -> Check.grants(url, password));
        Check.run("encryption", () -> Check.connect(arguments[2], "bob", password).close());
        try (Connection connection = Check.connect(url, "bob", password)) {
            Check.run("types", () -> Check.kinds(connection));
            Check.run("results in binary form", () -> binary(url, password));
            Check.run("parameters", () -> parameters(connection));
            Check.run("errors", () -> Check.errors(connection));
            Check.run("rows", () -> rows(connection));
            Check.run("transactions", () -> transactions(connection));
            Check.run("limits", () -> limits(connection));
            Check.run("tables and columns", () -> tables(connection.getMetaData()));
            Check.run("other metadata", () -> metadata(connection.getMetaData()));
        }
        System.out.println("all is well");
    }

    /** The driver asks for binary results once a statement has run a few times. */
    static void binary(String url, String password) throws SQLException {
        try (Connection connection = Check.connect(url + "?prepareThreshold=-1&binaryTransfer=true", "bob", password)) {
            Check.kinds(connection);
        }
    }

    static void parameters(Connection connection) throws SQLException {
        Check.compare(connection, "whole > ?", -1.5, 1);
        Check.compare(connection, "whole > ?", new BigDecimal("-70000.5"), 2);
        Check.compare(connection, "amount > ?", new BigDecimal("-1234.505"), 2);
        Check.compare(connection, "amount < ?", 0, 1);
        Check.compare(connection, "small = ?", 7L, 1);
        Check.compare(connection, "day < ?", Date.valueOf("2024-02-29"), 1);
        Check.compare(connection, "day < ?", LocalDateTime.parse("2024-02-29T00:00:01"), 2);
        Check.compare(connection, "day = ?", LocalDate.parse("2024-02-29"), 1);
        Check.compare(connection, "moment = ?", Timestamp.valueOf("2024-02-29 12:34:56.789"), 1);
        Check.compare(connection, "instant = ?", OffsetDateTime.parse("2024-02-29T12:34:56+02:00"), 1);
        Check.compare(connection, "word = ?", "", 1);
        Check.compare(connection, "yes = ?", true, 1);
        Check.compare(connection, "large = ANY(?)", connection.createArrayOf("bigint", new Long[] {1L, 5_000_000_000L}), 1);
        Check.compare(connection, "word = ANY(?)", connection.createArrayOf("text", new String[] {"", "x"}), 1);
        Check.compare(connection, "word = ANY(?)", connection.createArrayOf("text", new String[] {"\"", "a,b", "NULL", null}), 0);
        Check.compare(connection, "day = ANY(?)", connection.createArrayOf("date", new Date[] {Date.valueOf("2024-02-29")}), 1);
        Check.compare(connection, "word = ?", "''", 0);
        try (PreparedStatement statement = connection.prepareStatement("SELECT day FROM kinds WHERE large = ? AND word = ?")) {
            Check.equal(statement.getParameterMetaData().getParameterTypeName(1), "int8");
            Check.equal(statement.getMetaData().getColumnTypeName(1), "date");
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT ?, ?::bigint")) {
            statement.setString(1, "x");
            statement.setNull(2, java.sql.Types.BIGINT);
            ResultSet row = statement.executeQuery();
            Check.that(row.next(), "no row");
            Check.equal(row.getObject(1), "x");
            Check.equal(row.getObject(2), null);
        }
    }

    static void rows(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(999); // The result stays in the server, which gives that many rows at a time.
            Check.equal(Check.count(statement.executeQuery("SELECT id FROM numbers")), Check.ROWS);
            ResultSet rows = statement.executeQuery(Check.LONG);
            for (int row = 0; row < 2_000; row++) {
                Check.that(rows.next(), "it never ends");
            }
            rows.close();
            statement.setFetchSize(0);
            statement.execute("DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id");
            Check.equal(Check.column(statement.executeQuery("FETCH 3 FROM c"), "id"), List.of("0", "1", "2"));
            statement.execute("CLOSE c");
        }
        connection.rollback();
        connection.setAutoCommit(true);
        try (Statement statement = connection.createStatement()) {
            statement.setMaxRows(10);
            Check.equal(Check.count(statement.executeQuery("SELECT id FROM numbers")), 10);
        }
    }

    static void transactions(Connection connection) throws Exception {
        connection.setAutoCommit(false);
        Savepoint savepoint = connection.setSavepoint("s");
        Check.equal(Check.fails("zero", () -> Check.number(connection, "SELECT 1 / 0")).getSQLState(), "22012");
        Check.equal(Check.fails("ROLLBACK", () -> Check.number(connection, "SELECT 1")).getSQLState(), "25P02");
        connection.rollback(savepoint);
        Check.equal(Check.number(connection, "SELECT 2"), 2L);
        connection.commit();
        connection.setAutoCommit(true);
        connection.setReadOnly(true);
        Check.that(connection.isReadOnly() && connection.isValid(60), "not valid");
        Check.equal(connection.getSchema(), "public");
        Check.equal(connection.getCatalog(), "coscan");
    }

    static void limits(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1); // The driver cancels the query on a connection of its own.
            SQLException error = Check.fails("cancel", () -> Check.count(statement.executeQuery(Check.LONG)));
            Check.equal(error.getSQLState(), "57014");
            statement.setQueryTimeout(0);
            statement.execute("SET statement_timeout = '200ms'");
            Check.fails("statement_timeout", () -> Check.count(statement.executeQuery(Check.LONG)));
            statement.execute("RESET statement_timeout");
        }
    }

    static void tables(DatabaseMetaData metadata) throws SQLException {
        Check.equal(Check.column(metadata.getCatalogs(), "TABLE_CAT"), List.of("coscan"));
        Check.equal(Check.column(metadata.getSchemas(null, "pub%"), "TABLE_SCHEM"), List.of("public"));
        String[] types = {"TABLE", "VIEW"};
        Check.equal(
            Check.column(metadata.getTables("coscan", "public", "%", types), "TABLE_NAME"),
            List.of("kinds", "numbers", "secrets"));
        try (ResultSet column = metadata.getColumns(null, "public", "numbers", "%")) {
            Check.that(column.next(), "no columns");
            Check.equal(column.getString("COLUMN_NAME"), "id");
            Check.equal(column.getInt("DATA_TYPE"), java.sql.Types.BIGINT);
            Check.equal(column.getString("TYPE_NAME"), "int8");
            Check.equal(column.getInt("ORDINAL_POSITION"), 1);
            Check.that(column.next() && column.getString("TYPE_NAME").equals("text"), "no second column");
            Check.that(!column.next(), "more columns");
        }
        Check.equal(Check.count(metadata.getColumns(null, "public", "kinds", null)), 13);
    }

    static void metadata(DatabaseMetaData metadata) throws SQLException {
        Check.that(Check.column(metadata.getTypeInfo(), "TYPE_NAME").contains("int8"), "no int8");
        Check.that(Check.column(metadata.getTableTypes(), "TABLE_TYPE").contains("TABLE"), "no tables");
        Check.equal(Check.count(metadata.getPrimaryKeys(null, "public", "numbers")), 0);
        Check.equal(Check.count(metadata.getImportedKeys(null, "public", "numbers")), 0);
        Check.equal(Check.count(metadata.getExportedKeys(null, "public", "numbers")), 0);
        Check.equal(Check.count(metadata.getCrossReference(null, "public", "numbers", null, "public", "kinds")), 0);
        Check.equal(Check.count(metadata.getIndexInfo(null, "public", "numbers", false, false)), 0);
        Check.equal(Check.count(metadata.getBestRowIdentifier(null, "public", "numbers", 0, true)), 0);
        Check.count(metadata.getTablePrivileges(null, "public", "numbers"));
        Check.count(metadata.getColumnPrivileges(null, "public", "numbers", "%"));
        Check.count(metadata.getProcedures(null, "public", "%"));
        Check.count(metadata.getFunctions(null, "public", "%"));
        Check.equal(Check.count(metadata.getUDTs(null, "public", "%", null)), 0);
        Check.that(Check.column(metadata.getSchemas(), "TABLE_SCHEM").contains("public"), "no schema");
        Check.equal(Check.column(metadata.getCatalogs(), "TABLE_CAT"), List.of("coscan"));
        Check.count(metadata.getClientInfoProperties());
    }
}
