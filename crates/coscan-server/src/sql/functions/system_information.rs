//! Functions that read and change the settings of a session, or tell what it may read.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::catalog::CatalogProviderList;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use crate::sql::catalog::UserCatalogs;
use crate::sql::settings::transactional::SessionSettings;
use crate::sql::{CATALOG, SCHEMA, Session};
use crate::users::User;

/// The functions for a session.
pub(super) fn of_session(session: &Session) -> [ScalarUDF; 4] {
    let function = |name, arguments: &[usize], result, kind| {
        let arguments = arguments.iter().map(|count| TypeSignature::Any(*count)).collect();
        // A statement does not see changes that SET makes while it runs, since settings are taken
        // at its start.
        let volatility = if kind == Kind::Set { Volatility::Volatile } else { Volatility::Stable };
        ScalarUDF::new_from_impl(OfSession {
            name,
            kind,
            result,
            signature: Signature::one_of(arguments, volatility),
            settings: Arc::clone(session.shared_settings()),
            user: Arc::clone(&session.user),
            catalogs: Arc::clone(&session.catalogs),
        })
    };
    [
        function("current_setting", &[1, 2], DataType::Utf8, Kind::Get),
        function("set_config", &[3], DataType::Utf8, Kind::Set),
        function("has_table_privilege", &[2, 3], DataType::Boolean, Kind::HasPrivilege),
        function("to_regclass", &[1], DataType::Utf8, Kind::FindTable),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// `current_setting(name, missing_ok)`.
    Get,
    /// `set_config(name, value, is_local)`.
    Set,
    /// `has_table_privilege(user, table, privilege)`, where the user may be left out.
    HasPrivilege,
    /// `to_regclass(table)`.
    FindTable,
}

struct OfSession {
    name: &'static str,
    kind: Kind,
    result: DataType,
    signature: Signature,
    settings: Arc<SessionSettings>,
    user: Arc<User>,
    catalogs: Arc<UserCatalogs>,
}

impl OfSession {
    fn has_table(&self, name: &str) -> bool {
        let name = match name.contains('"') {
            true => name.replace('"', ""),
            false => name.to_ascii_lowercase(),
        };
        let name = name.strip_prefix("public.").unwrap_or(&name);
        let catalog = self.catalogs.catalog(CATALOG);
        let schema = catalog.and_then(|catalog| catalog.schema(SCHEMA));
        schema.is_some_and(|schema| schema.table_exist(name))
    }

    fn text(&self, arguments: &[Option<&str>]) -> Result<Option<String>> {
        let settings = || self.settings.now();
        let refused = |error: crate::queries::QueryError| DataFusionError::Execution(error.text);
        match (self.kind, arguments) {
            (Kind::Get, [Some(name), missing_ok @ ..]) => match settings().get(name, &self.user) {
                Ok(value) => Ok(Some(value)),
                Err(_) if matches!(missing_ok, [Some("true" | "t")]) => Ok(None),
                Err(error) => Err(refused(error)),
            },
            (Kind::Set, [Some(name), value, is_local]) => {
                let is_local = matches!(is_local, Some("true" | "t"));
                let set = |to: &mut crate::sql::Settings| to.set(name, *value, &self.user);
                self.settings.change(is_local, set).map_err(refused)?;
                let mut changed = settings();
                changed.set(name, *value, &self.user).map_err(refused)?;
                changed.get(name, &self.user).map(Some).map_err(refused)
            }
            (Kind::FindTable, [Some(name)]) => Ok(self.has_table(name).then(|| (*name).to_owned())),
            _ => Ok(None),
        }
    }

    /// Whether the user has a privilege. Tables can only be read. Numbers are those of tables that the catalog lists.
    fn has_privilege(&self, arguments: &[Option<&str>]) -> Option<bool> {
        let [user @ .., table, privilege] = arguments else { return None };
        let (table, privilege) = ((*table)?, (*privilege)?.to_ascii_lowercase());
        if user.iter().any(|user| *user != Some(self.user.name.as_str())) {
            return None; // What others may is not told.
        }
        let is_number = !table.is_empty() && table.bytes().all(|byte| byte.is_ascii_digit());
        let mut wanted = privilege.split(',').map(str::trim);
        Some(wanted.any(|one| one == "select") && (is_number || self.has_table(table)))
    }
}

impl ScalarUDFImpl for OfSession {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let texts = arrays.iter().map(|array| Ok(cast(array, &DataType::Utf8)?));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let row = |row: usize| -> Vec<Option<&str>> {
            let texts = texts.iter().map(|texts| texts.as_string::<i32>());
            texts.map(|texts| texts.is_valid(row).then(|| texts.value(row))).collect()
        };
        let rows = 0..arrays.first().map_or(0, |array| array.len());
        let result: ArrayRef = if self.kind == Kind::HasPrivilege {
            Arc::new(rows.map(|at| self.has_privilege(&row(at))).collect::<BooleanArray>())
        } else {
            let texts = rows.map(|at| self.text(&row(at))).collect::<Result<StringArray>>()?;
            Arc::new(texts)
        };
        Ok(ColumnarValue::Array(result))
    }
}

/// Functions of one session are equal if their names are.
impl PartialEq for OfSession {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && Arc::ptr_eq(&self.settings, &other.settings)
    }
}

impl Eq for OfSession {}

impl Hash for OfSession {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl fmt::Debug for OfSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfSession").field("name", &self.name).finish_non_exhaustive()
    }
}
