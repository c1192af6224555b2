//! `rekey`: what the store is encrypted with.

use crate::args::Rekey;
use crate::error::CliError;
use crate::output::{DIM, Output};
use crate::progress::Progress;
use crate::store::StoreLocation;
use serde_json::json;
use server::StoreKey;

pub(crate) async fn rekey(
    place: &StoreLocation,
    options: &Rekey,
    output: &Output,
) -> Result<(), CliError> {
    place.refuse_database("encrypt the disks of its server")?;
    let key = match &options.new_key_env {
        Some(variable) => Some(new_key(variable)?),
        None => None,
    };
    let progress = Progress::of_work("writing the store anew", output);
    let left = place.rekey(key).await?;
    drop(progress);
    output.value(&json!({"encrypted": options.new_key_env.is_some(), "left": left}))?;
    output.line(&match &options.new_key_env {
        Some(variable) => format!(
            "The store is encrypted with the key in {variable}.\n\
             {DIM}The configuration has to say so from now on:{DIM:#}\n[store]\nkey_env = {variable:?}"
        ),
        None => "The store is not encrypted.\n\
                 The configuration must not have [store] key_env any more."
            .to_owned(),
    })?;
    for copy in left {
        output.line(&format!(
            "{DIM}This copy from an earlier migration is as it was; delete it if it is not needed:{DIM:#} {}",
            copy.display()
        ))?;
    }
    Ok(())
}

fn new_key(variable: &str) -> Result<StoreKey, CliError> {
    let text = crate::environment::environment(variable).unwrap_or_default();
    text.parse().map_err(|source| CliError::NewKey {
        variable: variable.to_owned(),
        source,
    })
}
