//! Whose threads an operator means.

use runtime::TenantId;

/// The tenant of development mode.
pub const DEV_TENANT: &str = "dev";

/// The tenant of an operator's command is unknown or ambiguous.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TenantUnclear {
    /// The name is empty.
    #[error("a tenant has a name, and this one is empty")]
    Empty,
    /// No tenant has this name.
    #[error("there is no tenant {name:?}; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// There are several tenants, and the command names none.
    #[error("say whose threads with --tenant; there are: {known}")]
    Several {
        /// Their names.
        known: String,
    },
}

/// The tenant of an operator's command: the named one, else the only one.
///
/// If no tenants are configured, the store may be from another configuration, so every name is accepted.
/// If tenants are configured, the store may still have threads of the default tenant.
pub fn tenant_of<'a>(
    configured: impl Iterator<Item = &'a str>,
    named: Option<&str>,
) -> Result<TenantId, TenantUnclear> {
    let configured: Vec<&str> = configured.collect();
    let known = || configured.join(", ");
    match (named, configured.as_slice()) {
        (Some(""), _) => Err(TenantUnclear::Empty),
        (Some(name), []) => Ok(name.into()),
        (Some(name), known) if name == DEV_TENANT || known.contains(&name) => Ok(name.into()),
        (Some(name), _) => Err(TenantUnclear::Unknown {
            name: name.to_owned(),
            known: known(),
        }),
        (None, []) => Ok(DEV_TENANT.into()),
        (None, [only]) => Ok((*only).into()),
        (None, _) => Err(TenantUnclear::Several { known: known() }),
    }
}
