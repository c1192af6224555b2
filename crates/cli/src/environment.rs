//! The variables of the environment.

use std::ffi::OsStr;

/// The value of an environment variable; `None` if it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether the variable is set but empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub(crate) fn is_empty_variable(name: &OsStr) -> bool {
    std::env::var_os(name).is_some_and(|value| value.is_empty())
}
