//! The built-in tools, which a configuration refers to by name.

mod arithmetic;
mod bounded;
mod compute;
mod expression;
mod ledger;
mod read_file;

pub(crate) use bounded::bounded;

use crate::config::ToolsConfig;
use std::path::Path;
use upp::Tool;

pub(crate) const READ_FILE: &str = "read_file";
pub(crate) const COMPUTE: &str = "compute";
pub(crate) const RECORD: &str = "record";

/// The tool names that an agent's configuration may list.
pub(crate) fn names(config: &ToolsConfig) -> impl Iterator<Item = &'static str> {
    let record = config.ledger.is_some().then_some(RECORD);
    [READ_FILE, COMPUTE].into_iter().chain(record)
}

/// The tool of this name.
pub(crate) fn find(name: &str, config: &ToolsConfig, files: &Path) -> Option<Tool> {
    match name {
        READ_FILE => Some(read_file::tool(files)),
        COMPUTE => Some(compute::tool()),
        RECORD => config
            .ledger
            .as_deref()
            .map(|path| ledger::tool(path, config.ledger_effect)),
        _ => None,
    }
}
