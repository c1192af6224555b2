//! The store: its encryption, or its database.

use super::{Checker, ConfigError};
use crate::config::file::{Shard, Store};
use crate::config::{DEFAULT_SHARD, NoStoreKey, PostgresConfig, StoreConfig};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use toml::Spanned;

/// Maximum number of connections of a node that write, and of those that read.
const MAX_CONNECTIONS: usize = 256;
/// Maximum length of a shard's name, in bytes.
const MAX_NAME: usize = 64;

impl Checker<'_> {
    pub(super) fn store(&self, file: Store) -> Result<StoreConfig, ConfigError> {
        let Store {
            key_env,
            url,
            url_env,
            listen_url,
            listen_url_env,
            prepared,
            writers,
            readers,
            ca,
            shards,
        } = file;
        let own = Shard {
            url,
            url_env,
            listen_url,
            listen_url_env,
            prepared,
            writers,
            readers,
            ca,
        };
        let has_database = own.url.is_some() || own.url_env.is_some();
        let postgres = self.postgres("[store]", &own)?;
        let key = match &key_env {
            Some(variable) if has_database => {
                let message = "a PostgreSQL database can't be encrypted by this program; encrypt the disks of its server, \
                               and remove this field";
                return Err(self.wrong(variable, message));
            }
            Some(variable) => match self.secret(variable, "the store's key") {
                Some(text) => {
                    let key = text.expose_secret().parse();
                    Some(key.map_err(|error: NoStoreKey| {
                        self.wrong(variable, format!("{}: {error}", variable.get_ref()))
                    })?)
                }
                None => None,
            },
            None => None,
        };
        let mut config = StoreConfig {
            key,
            postgres,
            shards: BTreeMap::new(),
        };
        for (name, shard) in shards {
            if !has_database {
                let message = "a shard is a further database, and [store] names none, expected url or url_env in [store]";
                return Err(self.wrong(&name, message));
            }
            if let Some(database) = self.shard(&name, &shard, &config)? {
                config.shards.insert(name.into_inner(), database);
            }
        }
        Ok(config)
    }

    /// A further database.
    fn shard(
        &self,
        name: &Spanned<String>,
        file: &Shard,
        known: &StoreConfig,
    ) -> Result<Option<PostgresConfig>, ConfigError> {
        let text = name.get_ref();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(fits) {
            let message = format!(
                "{text:?} is no name of a shard, expected 1 to {MAX_NAME} letters, digits, '-' and '_'"
            );
            return Err(self.wrong(name, message));
        }
        if text == DEFAULT_SHARD {
            let message = "\"default\" is the database of [store], expected another name";
            return Err(self.wrong(name, message));
        }
        if file.url.is_none() && file.url_env.is_none() {
            let message = "this shard names no database, expected url or url_env";
            return Err(self.wrong(name, message));
        }
        let database = self.postgres("the shard", file)?;
        let others = known.postgres.iter().chain(known.shards.values());
        if let Some(database) = &database
            && let Some(place) = file.url.as_ref().or(file.url_env.as_ref())
        {
            let url = database.url.expose_secret();
            let mut others = others.map(|it| it.url.expose_secret());
            if !url.is_empty() && others.any(|it| it == url) {
                let message = "this is the database of [store] or of another shard, expected each database once";
                return Err(self.wrong(place, message));
            }
        }
        Ok(database)
    }

    /// The database of a table; none if it names none.
    fn postgres(&self, table: &str, file: &Shard) -> Result<Option<PostgresConfig>, ConfigError> {
        let url = self.database("url", file.url.as_ref(), file.url_env.as_ref())?;
        let listen_url = self.database(
            "listen_url",
            file.listen_url.as_ref(),
            file.listen_url_env.as_ref(),
        )?;
        // A variable that is missing is a finding. The store is a database all the same.
        let url = url.or_else(|| file.url_env.as_ref().map(|_| SecretString::default()));
        let Some(url) = url else {
            let needless = [
                file.listen_url.as_ref().map(Spanned::span),
                file.listen_url_env.as_ref().map(Spanned::span),
                file.prepared.as_ref().map(Spanned::span),
                file.writers.as_ref().map(Spanned::span),
                file.readers.as_ref().map(Spanned::span),
                file.ca.as_ref().map(Spanned::span),
            ];
            if let Some(span) = needless.into_iter().flatten().next() {
                let message = format!(
                    "this is for a database, and {table} names none, expected url or url_env"
                );
                return Err(ConfigError::at(self.text, span, message));
            }
            return Ok(None);
        };
        let default = PostgresConfig::default();
        Ok(Some(PostgresConfig {
            url,
            listen_url,
            prepared: file.prepared.as_ref().is_none_or(|it| *it.get_ref()),
            writers: self.connections("writers", file.writers.as_ref(), default.writers)?,
            readers: self.connections("readers", file.readers.as_ref(), default.readers)?,
            ca: file.ca.as_ref().map(|path| path.get_ref().clone()),
        }))
    }

    fn connections(
        &self,
        name: &str,
        count: Option<&Spanned<NonZeroUsize>>,
        default: NonZeroUsize,
    ) -> Result<NonZeroUsize, ConfigError> {
        match count {
            Some(count) if count.get_ref().get() > MAX_CONNECTIONS => {
                let message = format!("{name} is too large, expected at most {MAX_CONNECTIONS}");
                Err(self.wrong(count, message))
            }
            Some(count) => Ok(*count.get_ref()),
            None => Ok(default),
        }
    }

    /// A URL from the file, which has no password, or from a variable.
    fn database(
        &self,
        name: &str,
        text: Option<&Spanned<String>>,
        variable: Option<&Spanned<String>>,
    ) -> Result<Option<SecretString>, ConfigError> {
        match (text, variable) {
            (None, None) => Ok(None),
            (Some(text), Some(_)) => {
                let message = format!("there are both {name} and {name}_env, expected one of them");
                Err(self.wrong(text, message))
            }
            (Some(text), None) => {
                let url = text.get_ref();
                if !is_database(url) {
                    return Err(self.wrong(text, format!("{NO_DATABASE} in {name}")));
                }
                if has_password(url) {
                    let message = format!(
                        "the file has no secrets, and this URL has a password; put the URL into a variable, and name it in {name}_env"
                    );
                    return Err(self.wrong(text, message));
                }
                Ok(Some(url.as_str().into()))
            }
            (None, Some(variable)) => {
                let Some(url) = self.secret(variable, "the URL of a database") else {
                    return Ok(None);
                };
                if !is_database(url.expose_secret()) {
                    let name = variable.get_ref();
                    return Err(self.wrong(variable, format!("{NO_DATABASE} in {name}")));
                }
                Ok(Some(url))
            }
        }
    }
}

const NO_DATABASE: &str = "expected a URL such as \"postgres://user@host/database\"";

/// The part of a URL after its scheme.
fn rest(url: &str) -> Option<&str> {
    let schemes = ["postgres://", "postgresql://"];
    schemes.iter().find_map(|scheme| url.strip_prefix(scheme))
}

fn is_database(url: &str) -> bool {
    rest(url).is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

fn has_password(url: &str) -> bool {
    let rest = rest(url).unwrap_or(url);
    // A password may have a slash or a question mark: it ends at the first @.
    let user = rest.split_once('@').map(|(user, _)| user);
    let parameters = rest
        .split_once('?')
        .map_or("", |(_, parameters)| parameters);
    user.is_some_and(|user| user.contains(':'))
        || parameters
            .split('&')
            .any(|parameter| parameter.starts_with("password="))
}
