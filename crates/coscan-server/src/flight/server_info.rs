//! Information on the server itself: the capabilities and types of its SQL.

use arrow_flight::error::Result;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    Nullable, Searchable, SqlInfo, SqlNullOrdering, SqlOuterJoinsSupportLevel,
    SqlSupportedCaseSensitivity, SqlSupportedGroupBy, SqlSupportedSubqueries,
    SqlSupportedTransaction, SqlSupportedUnions, SupportedSqlGrammar, XdbcDataType,
};

/// The capabilities of the server. With a database, users may have the right to change tables.
pub(super) fn sql_info(has_database: bool) -> Result<SqlInfoData> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "coscan");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::None as i32);
    for (name, is_so) in [
        (SqlInfo::FlightSqlServerReadOnly, !has_database),
        (SqlInfo::FlightSqlServerSql, true),
        (SqlInfo::FlightSqlServerSubstrait, false),
        (SqlInfo::FlightSqlServerCancel, true),
        (SqlInfo::FlightSqlServerBulkIngestion, false),
        (SqlInfo::SqlDdlCatalog, false),
        (SqlInfo::SqlDdlSchema, false),
        (SqlInfo::SqlDdlTable, has_database),
        (SqlInfo::SqlAllTablesAreSelectable, true),
        (SqlInfo::SqlSupportsColumnAliasing, true),
        (SqlInfo::SqlNullPlusNullIsNull, true),
        (SqlInfo::SqlSupportsTableCorrelationNames, true),
        (SqlInfo::SqlSupportsDifferentTableCorrelationNames, false),
        (SqlInfo::SqlSupportsExpressionsInOrderBy, true),
        (SqlInfo::SqlSupportsOrderByUnrelated, true),
        (SqlInfo::SqlSupportsLikeEscapeClause, true),
        (SqlInfo::SqlSupportsNonNullableColumns, true),
        (SqlInfo::SqlSupportsIntegrityEnhancementFacility, false),
        (SqlInfo::SqlCatalogAtStart, true),
        (SqlInfo::SqlSelectForUpdateSupported, false),
        (SqlInfo::SqlStoredProceduresSupported, false),
        (SqlInfo::SqlCorrelatedSubqueriesSupported, true),
        (SqlInfo::SqlBatchUpdatesSupported, false),
        (SqlInfo::SqlSavepointsSupported, false),
        (SqlInfo::SqlNamedParametersSupported, false),
        (SqlInfo::SqlStoredFunctionsUsingCallSyntaxSupported, false),
    ] {
        info.append(name, is_so);
    }
    for (name, text) in [
        (SqlInfo::SqlIdentifierQuoteChar, "\""),
        (SqlInfo::SqlSearchStringEscape, "\\"),
        (SqlInfo::SqlExtraNameCharacters, ""),
        (SqlInfo::SqlSchemaTerm, "schema"),
        (SqlInfo::SqlCatalogTerm, "catalog"),
        (SqlInfo::SqlProcedureTerm, "procedure"),
    ] {
        info.append(name, text);
    }
    info.append(
        SqlInfo::SqlIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32,
    );
    info.append(
        SqlInfo::SqlQuotedIdentifierCase,
        SqlSupportedCaseSensitivity::SqlCaseSensitivityUnknown as i32,
    );
    info.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    let sets = [
        (SqlInfo::SqlSupportedGroupBy, &[SqlSupportedGroupBy::SqlGroupByUnrelated as i32][..]),
        (
            SqlInfo::SqlSupportedGrammar,
            &[
                SupportedSqlGrammar::SqlMinimumGrammar as i32,
                SupportedSqlGrammar::SqlCoreGrammar as i32,
            ],
        ),
        (
            SqlInfo::SqlOuterJoinsSupportLevel,
            &[SqlOuterJoinsSupportLevel::SqlFullOuterJoins as i32],
        ),
        (
            SqlInfo::SqlSupportedSubqueries,
            &[
                SqlSupportedSubqueries::SqlSubqueriesInComparisons as i32,
                SqlSupportedSubqueries::SqlSubqueriesInExists as i32,
                SqlSupportedSubqueries::SqlSubqueriesInIns as i32,
            ],
        ),
        (
            SqlInfo::SqlSupportedUnions,
            &[SqlSupportedUnions::SqlUnion as i32, SqlSupportedUnions::SqlUnionAll as i32],
        ),
    ];
    for (name, values) in sets {
        info.append(name, values.iter().fold(0, |set, value| set | 1 << value));
    }
    for name in [SqlInfo::SqlMaxConnections, SqlInfo::SqlMaxColumnsInSelect, SqlInfo::SqlMaxRowSize]
    {
        info.append(name, 0_i64); // No limit, or one that is not known.
    }
    info.build()
}

/// The types of SQL.
pub(super) fn type_info() -> Result<XdbcTypeInfoData> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    for (name, data_type, size, quote) in [
        ("BOOLEAN", XdbcDataType::XdbcBit, 1, None),
        ("TINYINT", XdbcDataType::XdbcTinyint, 3, None),
        ("SMALLINT", XdbcDataType::XdbcSmallint, 5, None),
        ("INTEGER", XdbcDataType::XdbcInteger, 10, None),
        ("BIGINT", XdbcDataType::XdbcBigint, 19, None),
        ("REAL", XdbcDataType::XdbcReal, 24, None),
        ("DOUBLE", XdbcDataType::XdbcDouble, 53, None),
        ("DECIMAL", XdbcDataType::XdbcDecimal, 76, None),
        ("VARCHAR", XdbcDataType::XdbcVarchar, i32::MAX, Some("'")),
        ("BYTEA", XdbcDataType::XdbcVarbinary, i32::MAX, Some("'")),
        ("DATE", XdbcDataType::XdbcDate, 10, Some("'")),
        ("TIME", XdbcDataType::XdbcTime, 18, Some("'")),
        ("TIMESTAMP", XdbcDataType::XdbcTimestamp, 29, Some("'")),
        ("INTERVAL", XdbcDataType::XdbcInterval, 64, Some("'")),
    ] {
        let is_decimal = data_type == XdbcDataType::XdbcDecimal;
        types.append(XdbcTypeInfo {
            type_name: name.to_owned(),
            data_type,
            column_size: Some(size),
            literal_prefix: quote.map(str::to_owned),
            literal_suffix: quote.map(str::to_owned),
            create_params: is_decimal.then(|| vec!["precision".to_owned(), "scale".to_owned()]),
            nullable: Nullable::NullabilityNullable,
            case_sensitive: quote.is_some(),
            searchable: Searchable::Full,
            sql_data_type: data_type,
            ..XdbcTypeInfo::default()
        });
    }
    types.build()
}
