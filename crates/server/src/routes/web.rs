//! The web interface: pages, their live patches, and the actions of their forms.
//!
//! The crate `web` draws. These routes read threads for it, and do what forms ask for through the same
//! functions as the native API. They are for the server's own pages and are no public API.

mod actions;
mod assets;
mod console;
mod embed;
mod files;
mod form;
mod inbox;
mod inherited;
mod live;
mod live_requests;
mod live_side;
mod login;
mod pages;
mod reading;
mod reply;
mod request_view;
mod requests;
mod routes;

pub(crate) use login::redirect_or_refuse;
pub(crate) use pages::wants_page;
pub(crate) use reply::error_page;
pub(crate) use routes::PROTOCOL;

/// The protocol's name in the records of answers.
const VIA: &str = "web";
