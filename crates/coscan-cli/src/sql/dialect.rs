//! The dialect of statements that name an earlier version of a table.

use std::any::TypeId;

use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};

const GENERIC: GenericDialect = GenericDialect {};

/// The dialect of all other statements, with `VERSION AS OF` and `TIMESTAMP AS OF`. The dialects that have these clauses
/// differ in much else, such as in what double quotes mean.
#[derive(Debug)]
pub(super) struct VersionedDialect;

/// Implements methods by those of the generic dialect.
macro_rules! as_in_generic {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result { GENERIC.$name($($argument),*) })*
    };
}

impl Dialect for VersionedDialect {
    /// The type of the generic dialect, for which the parser has special cases.
    fn dialect(&self) -> TypeId {
        GENERIC.dialect()
    }

    fn supports_table_versioning(&self) -> bool {
        true
    }

    as_in_generic! {
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        supports_unicode_string_literal() -> bool;
        supports_partition_by_after_order_by() -> bool;
        supports_array_join_syntax() -> bool;
        supports_group_by_expr() -> bool;
        supports_group_by_with_modifier() -> bool;
        supports_left_associative_joins_without_parens() -> bool;
        supports_connect_by() -> bool;
        supports_match_recognize() -> bool;
        supports_pipe_operator() -> bool;
        supports_start_transaction_modifier() -> bool;
        supports_window_function_null_treatment_arg() -> bool;
        supports_dictionary_syntax() -> bool;
        supports_window_clause_named_window_reference() -> bool;
        supports_parenthesized_set_variables() -> bool;
        supports_select_wildcard_except() -> bool;
        support_map_literal_syntax() -> bool;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_extract_comma_syntax() -> bool;
        supports_create_view_comment_syntax() -> bool;
        supports_parens_around_table_factor() -> bool;
        supports_values_as_table_factor() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_limit_comma() -> bool;
        supports_update_order_by() -> bool;
        supports_from_first_select() -> bool;
        supports_projection_trailing_commas() -> bool;
        supports_asc_desc_in_column_definition() -> bool;
        supports_try_convert() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_assignment_operator() -> bool;
        supports_struct_literal() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_multiline_comment_hints() -> bool;
        supports_user_host_grantee() -> bool;
        supports_string_escape_constant() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_match_against() -> bool;
        supports_set_names() -> bool;
        supports_comma_separated_set_assignments() -> bool;
        supports_filter_during_aggregation() -> bool;
        supports_select_wildcard_exclude() -> bool;
        supports_data_type_signed_suffix() -> bool;
        supports_interval_options() -> bool;
        supports_quote_delimited_string() -> bool;
        supports_select_wildcard_replace() -> bool;
        supports_select_wildcard_ilike() -> bool;
        supports_select_wildcard_rename() -> bool;
        supports_optimize_table() -> bool;
        supports_install() -> bool;
        supports_detach() -> bool;
        supports_prewhere() -> bool;
        supports_with_fill() -> bool;
        supports_limit_by() -> bool;
        supports_interpolate() -> bool;
        supports_settings() -> bool;
        supports_select_format() -> bool;
        supports_comment_optimizer_hint() -> bool;
        supports_constraint_keyword_without_name() -> bool;
        supports_key_column_option() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_cte_without_as() -> bool;
        supports_select_item_multi_column_alias() -> bool;
        supports_xml_expressions() -> bool;
    }
}
