// The Flight SQL JDBC driver against a server with the tables of `--demo`.
//
//   mvn dependency:get -Dartifact=org.apache.arrow:flight-sql-jdbc-driver:18.3.0
//   coscan serve --demo --scale 0.01 --listen-flight 127.0.0.1:5434
//   java --add-opens=java.base/java.nio=ALL-UNNAMED \
//       -cp ~/.m2/repository/org/apache/arrow/flight-sql-jdbc-driver/18.3.0/flight-sql-jdbc-driver-18.3.0.jar \
//       Jdbc.java 'jdbc:arrow-flight-sql://127.0.0.1:5434/?useEncryption=false' [USER PASSWORD]

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

public class Jdbc {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        if (arguments.length > 2) {
            properties.put("user", arguments[1]);
            properties.put("password", arguments[2]);
        }
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            types(connection);
            rows(connection);
            parameters(connection);
            settings(connection);
            metadata(connection);
            errors(connection);
        }
        System.out.println("JDBC: all is well");
    }

    static void check(boolean is, Object seen) {
        if (!is) {
            throw new AssertionError(seen);
        }
    }

    static void types(Connection connection) throws SQLException {
        String sql = "SELECT DATE '2024-02-29', CAST(-1.5 AS DECIMAL(10, 2)), TIMESTAMP '2024-02-29T12:34:56', "
            + "CAST(NULL AS BIGINT), true, CAST(7 AS SMALLINT), 'a text that is longer than twelve bytes'";
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(sql)) {
            check(row.next(), "no row");
            check(row.getObject(1).toString().equals("2024-02-29"), row.getObject(1));
            check(row.getBigDecimal(2).equals(new BigDecimal("-1.50")), row.getBigDecimal(2));
            check(row.getTimestamp(3).toString().startsWith("2024-02-29"), row.getTimestamp(3));
            check(row.getLong(4) == 0 && row.wasNull(), "no NULL");
            check(row.getBoolean(5) && row.getInt(6) == 7, "boolean or smallint");
            check(row.getString(7).length() == 39, row.getString(7));
            check(!row.next(), "two rows");
        }
    }

    static void rows(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            long rows = 0;
            String sql = "SELECT l_orderkey, l_comment, l_shipdate, l_quantity FROM lineitem";
            try (ResultSet result = statement.executeQuery(sql)) {
                while (result.next()) {
                    check(result.getString(2) != null && result.getDate(3) != null, rows);
                    rows++;
                }
            }
            try (ResultSet count = statement.executeQuery("SELECT count(*) FROM lineitem")) {
                count.next();
                check(count.getLong(1) == rows, rows);
            }
        }
    }

    static void parameters(Connection connection) throws SQLException {
        String sql = "SELECT count(*) FROM lineitem WHERE l_returnflag = $1 AND l_shipdate < $2 AND l_orderkey > $3";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            long last = 0;
            for (String day : new String[] {"1993-06-01", "1994-01-01", "2000-01-01"}) {
                statement.setString(1, "R");
                statement.setDate(2, Date.valueOf(day));
                statement.setLong(3, 5);
                try (ResultSet count = statement.executeQuery()) {
                    count.next();
                    check(count.getLong(1) > last, count.getLong(1));
                    last = count.getLong(1);
                }
            }
        }
    }

    static void settings(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("SET statement_timeout = '7s'");
            try (ResultSet shown = statement.executeQuery("SHOW statement_timeout")) {
                shown.next();
                check(shown.getString(1).equals("7000ms"), shown.getString(1));
            }
        }
    }

    static void metadata(Connection connection) throws SQLException {
        var metadata = connection.getMetaData();
        check(metadata.getDatabaseProductName().equals("coscan"), metadata.getDatabaseProductName());
        check(metadata.isReadOnly(), "not read-only");
        check(metadata.getIdentifierQuoteString().equals("\""), metadata.getIdentifierQuoteString());
        try (ResultSet tables = metadata.getTables(null, "public", "line%", new String[] {"TABLE"})) {
            check(tables.next() && tables.getString("TABLE_NAME").equals("lineitem"), "no lineitem");
            check(!tables.next(), "more than lineitem");
        }
        int columns = 0;
        try (ResultSet all = metadata.getColumns(null, "public", "lineitem", null)) {
            while (all.next()) {
                columns++;
            }
        }
        check(columns == 16, columns);
        try (ResultSet keys = metadata.getPrimaryKeys(null, "public", "lineitem")) {
            check(!keys.next(), "a key");
        }
    }

    static void errors(Connection connection) throws SQLException {
        for (String sql : new String[] {"SELEC 1", "SELECT * FROM nothing"}) {
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery(sql);
                throw new AssertionError(sql);
            } catch (SQLException error) {
                check(error.getMessage().length() > 10, error);
            }
        }
    }
}
