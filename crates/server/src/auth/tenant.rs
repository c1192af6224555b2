//! Whose threads an operator means.

use runtime::TenantId;

/// The tenant of development mode.
pub const DEV_TENANT: &str = "dev";

/// An operator has named no tenant that there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TenantUnclear {
    /// The name is empty.
    #[error("a tenant has a name, and this one is empty")]
    Empty,
    /// There is none of this name.
    #[error("there is no tenant {name:?}; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// There are several, and none is named.
    #[error("say whose threads with --tenant; there are: {known}")]
    Several {
        /// Their names.
        known: String,
    },
}

/// The tenant that an operator means: the one that is named, else the only one there is.
///
/// Without configured tenants the store may have been another configuration's, so any name is taken. With them it may
/// have threads from before there were tenants.
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
