//! Checks of secrets and headers: the environment variables, and the legal header values.

use super::{Checker, FindingSeverity};
use crate::config::ConfigError;
use http::{HeaderName, HeaderValue, Uri};
use secrecy::SecretString;
use std::collections::BTreeMap;
use toml::Spanned;

impl Checker<'_> {
    /// The value of a variable; none if it is unset or empty.
    pub(super) fn variable(&self, name: &str) -> Option<SecretString> {
        (self.env)(name)
            .filter(|value| !value.is_empty())
            .map(Into::into)
    }

    /// The value of a variable that the file names; records a finding if there is none.
    pub(super) fn secret(&self, variable: &Spanned<String>, what: &str) -> Option<SecretString> {
        let value = self.variable(variable.get_ref());
        if value.is_none() {
            let name = variable.get_ref();
            let message = format!("the environment has no {name}, expected {what} in it");
            self.found(FindingSeverity::Error, variable.span(), message);
        }
        value
    }

    /// The headers from the file, and those with values from the environment.
    pub(super) fn headers(
        &self,
        plain: &BTreeMap<String, Spanned<String>>,
        from_env: &BTreeMap<String, Spanned<String>>,
    ) -> Result<BTreeMap<String, SecretString>, ConfigError> {
        let mut headers = BTreeMap::new();
        for (name, value) in plain {
            self.header_name(name, value)?;
            if HeaderValue::from_str(value.get_ref()).is_err() {
                return Err(self.wrong(value, "this can't be the value of a header"));
            }
            headers.insert(name.clone(), value.get_ref().as_str().into());
        }
        for (name, variable) in from_env {
            self.header_name(name, variable)?;
            if plain.contains_key(name) {
                let message = format!("the header {name:?} is in headers, too");
                return Err(self.wrong(variable, message));
            }
            if let Some(value) = self.secret(variable, "the value of a header") {
                headers.insert(name.clone(), value);
            }
        }
        Ok(headers)
    }

    fn header_name(&self, name: &str, place: &Spanned<String>) -> Result<(), ConfigError> {
        match HeaderName::try_from(name) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.wrong(place, format!("{name:?} is no name of a header"))),
        }
    }

    /// Refuses a text that is not an HTTP URL.
    pub(super) fn address(&self, url: &Spanned<String>) -> Result<(), ConfigError> {
        let read: Result<Uri, _> = url.get_ref().parse();
        let is_http = read.is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.host().is_some_and(|host| !host.is_empty())
        });
        if is_http {
            return Ok(());
        }
        // It may hold a key, so it is not shown.
        let message =
            "this is no HTTP address, expected one such as \"https://api.example.com/v1\"";
        Err(self.wrong(url, message))
    }
}
