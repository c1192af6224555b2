//! The page that compares two threads.

use super::shown_section::ShownSection;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::comparison::differences;
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::{Redirect, Response};
use serde::Deserialize;
use web::{DiffPage, ThreadSection};

/// The thread to compare with.
#[derive(Deserialize)]
pub(in crate::routes::web) struct ComparisonQuery {
    /// Its key; absent until the reader has chosen one.
    with: Option<String>,
}

/// Two threads to compare.
#[derive(Deserialize)]
pub(in crate::routes::web) struct ChosenBranches {
    left: String,
    right: String,
}

/// Shows the differences between two threads.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<ComparisonQuery>,
) -> Result<Response, ApiError> {
    let with = query.with.filter(|with| !with.is_empty());
    let resource = match &with {
        Some(with) => format!("diff?with={}", web::path_segment(with)),
        None => "tree".to_owned(),
    };
    let words = ("Differences", resource.as_str());
    let section = ShownSection::find(&thread, ThreadSection::Branches, words).await?;
    let diff = match &with {
        Some(with) => {
            check_key("with", with)?;
            Some(differences(&api, &thread, &thread.forked(with)?).await?)
        }
        None => None,
    };
    let parts = PageParts::read(&api, &caller).await?;
    let shown = DiffPage {
        frame: section.frame(&parts),
        key: thread.key(),
        other: with.as_deref().zip(diff.as_ref()),
    };
    Ok(page(shown.html()))
}

/// Leads to the comparison of the two threads of a form.
pub(in crate::routes::web) async fn choose(
    State(api): State<Api>,
    caller: Caller,
    Query(chosen): Query<ChosenBranches>,
) -> Result<Redirect, ApiError> {
    for (name, key) in [("left", &chosen.left), ("right", &chosen.right)] {
        check_key(name, key)?;
        ThreadKey::new(&api, &caller, key)?;
    }
    let [left, right] = [&chosen.left, &chosen.right].map(|key| web::path_segment(key));
    let path = format!("/console/t/{left}/diff?with={right}");
    Ok(Redirect::to(&path))
}

fn check_key(name: &str, key: &str) -> Result<(), ApiError> {
    crate::check_key(key).map_err(|invalid| ApiError::InvalidQuery {
        what: format!("{name}: {invalid}"),
    })
}
