import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

/** What the checks of both JDBC drivers share. */
final class Check {
    static final int ROWS = 30_000;

    /** Gives rows at once, and takes hours. */
    static final String LONG = "SELECT a.id FROM numbers a, numbers b, numbers c";

    /** A check that may fail in any way. */
    interface Body {
        void run() throws Exception;
    }

    private Check() {}

    static Connection connect(String url, String user, String password) throws SQLException {
        Properties properties = new Properties();
        properties.put("user", user);
        properties.put("password", password);
        return DriverManager.getConnection(url, properties);
    }

    static void that(boolean is, Object seen) {
        if (!is) {
            throw new AssertionError(seen);
        }
    }

    static void equal(Object seen, Object expected) {
        that(Objects.equals(seen, expected), seen + " is not " + expected);
    }

    /** Runs a check and says so, since the last name that is printed is that of the check that failed. */
    static void run(String name, Body body) throws Exception {
        System.out.println(name);
        body.run();
    }

    /** The error of a body that must fail, whose message has these words. */
    static SQLException fails(String words, Body body) throws Exception {
        try {
            body.run();
        } catch (SQLException error) {
            that(String.valueOf(error.getMessage()).contains(words), error);
            return error;
        }
        throw new AssertionError("no error with the words: " + words);
    }

    /** One column of a result, as text. */
    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        try (rows) {
            while (rows.next()) {
                values.add(rows.getString(name));
            }
        }
        return values;
    }

    static int count(ResultSet rows) throws SQLException {
        int count = 0;
        try (rows) {
            while (rows.next()) {
                count++;
            }
        }
        return count;
    }

    static long number(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(sql)) {
            that(row.next(), "no row");
            return row.getLong(1);
        }
    }

    /** How many rows of `kinds` fulfil a condition on a parameter. */
    static void compare(Connection connection, String condition, Object value, int expected) throws SQLException {
        String sql = "SELECT count(*) FROM kinds WHERE " + condition;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int again = 0; again < 7; again++) { // The driver prepares what is run often.
                statement.setObject(1, value);
                try (ResultSet row = statement.executeQuery()) {
                    that(row.next(), "no row");
                    that(row.getInt(1) == expected, condition + " " + value + ": " + row.getInt(1));
                }
            }
        }
    }

    static void kinds(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SELECT * FROM kinds ORDER BY large")) {
            ResultSetMetaData columns = row.getMetaData();
            equal(columns.getColumnCount(), 13);
            equal(columns.getColumnName(6), "amount");
            that(row.next() && row.next(), "no rows");
            equal(row.getShort(1), (short) 7);
            equal(row.getInt(2), -70_000);
            equal(row.getLong(3), 5_000_000_000L);
            equal(row.getFloat(4), 1.5f);
            equal(row.getDouble(5), -0.1);
            equal(row.getBigDecimal(6), new BigDecimal("-1234.50"));
            equal(row.getString(7), "é, a text of more than twelve bytes");
            equal(row.getDate(8).toString(), "2024-02-29");
            equal(row.getTimestamp(9).toLocalDateTime().toString(), "2024-02-29T12:34:56.789");
            equal(row.getTimestamp(10).toInstant().toString(), "2024-02-29T10:34:56Z");
            equal(row.getBoolean(11), true);
            that(java.util.Arrays.equals(row.getBytes(12), new byte[] {0, -1}), "other bytes");
            equal(((Object[]) row.getArray(13).getArray()).length, 3);
            that(row.next(), "no row of NULLs");
            for (int column = 1; column <= 13; column++) {
                // Not getObject, which the Flight SQL driver does not implement for all types.
                equal(row.getString(column), null);
            }
            that(!row.next(), "more rows");
        }
    }

    static void grants(String url, String password) throws Exception {
        try (Connection ann = connect(url, "ann", password)) {
            equal(column(ann.getMetaData().getTables(null, "public", "%", null), "TABLE_NAME"), List.of("numbers"));
            fails("secrets", () -> number(ann, "SELECT count(*) FROM secrets"));
        }
    }

    static void errors(Connection connection) throws Exception {
        for (String[] wrong : new String[][] {
            {"SELEC 1", "SELEC"},
            {"SELECT * FROM nothing", "nothing"},
            {"SELECT nothing FROM numbers", "nothing"},
            {"DROP TABLE numbers", "reads tables only"},
        }) {
            fails(wrong[1], () -> {
                try (Statement statement = connection.createStatement()) {
                    statement.execute(wrong[0]);
                }
            });
        }
        equal(number(connection, "SELECT 1"), 1L);
    }
}
