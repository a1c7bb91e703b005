//! The store of a bucket: its settings come from options and from the environment.

use url::Url;

use super::cloud::Cloud;
use super::credential_errors::{Credentials, Source};
use super::error::StoreError;
use super::options::StoreOptions;
use super::remote::RemoteStore;
use super::timeouts::Timeouts;

/// The store of a bucket. Options take precedence over the environment.
pub(super) fn build<C: Cloud>(
    root: &Url,
    options: &StoreOptions,
    timeouts: Timeouts,
) -> Result<RemoteStore, StoreError> {
    if !options.is_empty() && options.of_cloud::<C>().next().is_none() {
        let options = options.names();
        return Err(StoreError::UnusedOptions { options, url: root.to_string() });
    }
    if root.host_str().is_none_or(str::is_empty) {
        let scheme = root.scheme().to_owned();
        return Err(StoreError::MissingBucket { url: root.to_string(), scheme });
    }
    let (builder, credentials) = configure::<C>(&variables::<C>(), options)?;
    let store = builder.finish(root, timeouts).map_err(|error| StoreError::NotBuilt {
        url: root.to_string(),
        cause: Box::new(credentials.without_secrets(error)),
        help: C::HELP,
    })?;
    Ok(RemoteStore::new(root.as_str(), store, credentials))
}

/// A builder with all settings, and the source of its credentials. Options with any credential leave all credentials
/// of the environment aside, so that the two do not mix.
fn configure<C: Cloud>(
    variables: &[(String, String)],
    options: &StoreOptions,
) -> Result<(C, Credentials), StoreError> {
    let is_credential = |key: &C::Key| C::CREDENTIALS.contains(&key.as_ref());
    let brings_credentials = options.of_cloud::<C>().any(|(_, key, _)| is_credential(&key));
    let variables = variables.iter().filter_map(|(name, value)| {
        let key: C::Key = key_of_variable::<C>(name)?.parse().ok()?;
        let is_used = !(brings_credentials && is_credential(&key));
        is_used.then_some((name.as_str(), key, value.as_str()))
    });

    let mut builder = C::default();
    let source = Source { help: C::HELP, metadata_service: C::METADATA_SERVICE };
    let mut credentials = Credentials::from(source);
    let mut plain = None;
    let mut allows_plain = false;
    for (name, key, value) in variables.chain(options.of_cloud::<C>()) {
        if C::SECRETS.contains(&key.as_ref()) {
            credentials.hide(value);
        }
        if is_credential(&key) {
            credentials.add(name);
        }
        if C::ENDPOINTS.contains(&key.as_ref()) {
            plain = value.starts_with("http://").then(|| name.to_owned());
        }
        if key.as_ref() == "allow_http" {
            allows_plain = value.eq_ignore_ascii_case("true");
        }
        builder = builder.with(key, value);
    }
    if let Some(setting) = plain.filter(|_| !allows_plain) {
        let prefix = if setting.starts_with(C::OPTIONS) { C::OPTIONS } else { C::VARIABLES };
        let allow = if prefix == C::OPTIONS { "allow_http" } else { "ALLOW_HTTP" };
        return Err(StoreError::PlainHttp { setting, allow: format!("{prefix}{allow}") });
    }
    Ok((builder, credentials))
}

/// Variables of the environment that may be settings, sorted.
fn variables<C: Cloud>() -> Vec<(String, String)> {
    let mut variables: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| key_of_variable::<C>(name).is_some())
        .collect();
    variables.sort();
    variables
}

/// The key that a variable sets. Two variables of the clouds' own tools do not have the common prefix.
fn key_of_variable<C: Cloud>(name: &str) -> Option<String> {
    match (C::OPTIONS, name) {
        ("gcp.", "SERVICE_ACCOUNT") => Some("google_service_account".to_owned()),
        ("azure.", "IDENTITY_ENDPOINT") => Some("azure_msi_endpoint".to_owned()),
        _ => name.starts_with(C::VARIABLES).then(|| name.to_ascii_lowercase()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    const ENVIRONMENT: [(&str, &str); 4] = [
        ("AWS_ACCESS_KEY_ID", "id of the machine"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_SECRET_ACCESS_KEY", "secret of the machine"),
        ("AWS_SESSION_TOKEN", "token of the machine"),
    ];

    fn value(options: &[(&str, &str)], key: AmazonS3ConfigKey) -> Option<String> {
        let options = StoreOptions::new(pairs(options)).unwrap();
        let (builder, _) = configure::<AmazonS3Builder>(&pairs(&ENVIRONMENT), &options).unwrap();
        builder.get_config_value(&key)
    }

    #[test]
    fn credentials_of_options_are_not_mixed_with_those_of_the_environment() {
        use AmazonS3ConfigKey::{AccessKeyId, Region, Token};
        let credentials =
            [("aws.access_key_id", "own id"), ("aws.secret_access_key", "own secret")];
        assert_eq!(value(&credentials, AccessKeyId).unwrap(), "own id");
        assert_eq!(value(&credentials, Token), None);
        assert_eq!(value(&credentials, Region).unwrap(), "eu-west-1");
        let other = [("aws.region", "us-east-2")];
        assert_eq!(value(&other, AccessKeyId).unwrap(), "id of the machine");
        assert_eq!(value(&other, Token).unwrap(), "token of the machine");
        assert_eq!(value(&other, Region).unwrap(), "us-east-2");
    }

    #[test]
    fn an_http_address_of_the_environment_is_allowed_there() {
        let mut variables = pairs(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")]);
        let configure = |variables: &[(String, String)]| {
            configure::<AmazonS3Builder>(variables, &StoreOptions::default()).map(|_| ())
        };
        let text = configure(&variables).unwrap_err().to_string();
        assert!(text.contains("AWS_ENDPOINT_URL") && text.contains("AWS_ALLOW_HTTP"), "{text}");
        variables.extend(pairs(&[("AWS_ALLOW_HTTP", "true")]));
        configure(&variables).unwrap();
    }
}
