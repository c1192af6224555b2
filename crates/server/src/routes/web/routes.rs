//! The routes of the web interface: for each its method, path, scope, and the place of the thread's key.

use crate::error::ErrorFormat;
use crate::protocol::Access::{Open, Read, Write};
use crate::protocol::ThreadAt::{InBody, NoThread, PathKey};
use crate::protocol::{Protocol, Route, Rules, undocumented};
use axum::routing::{get, post};

/// The web interface.
pub(crate) const PROTOCOL: Protocol = Protocol {
    base: "",
    errors: ErrorFormat::Page,
    prefixes: &[
        ("/chat", ErrorFormat::Page),
        ("/ui", ErrorFormat::Page),
        ("/assets", ErrorFormat::Page),
        ("/login", ErrorFormat::Page),
        ("/logout", ErrorFormat::Page),
    ],
    links: &[("chat", "/chat")],
    rules: Rules {
        own_pages: true,
        ..Rules::NONE
    },
    routes,
    bodies: "",
};

#[rustfmt::skip]
fn routes() -> Vec<Route> {
    use super::{actions, assets, embed, live, login, pages, requests};
    vec![
        Route::get("/login", Open, NoThread, undocumented(get(login::form))),
        Route::post("/login", Open, NoThread, undocumented(post(login::log_in))),
        Route::post("/logout", Open, NoThread, undocumented(post(login::log_out))),
        Route::get("/embed.js", Open, NoThread, undocumented(get(embed::script))),
        Route::get("/embed/{agent}", Open, NoThread, undocumented(get(embed::frame))),
        Route::post("/ui/embedded", Read, InBody, undocumented(post(embed::content))),
        Route::get("/chat", Read, NoThread, undocumented(get(pages::new_chat))),
        Route::get("/chat/{key}", Read, PathKey("key"), undocumented(get(pages::chat))),
        Route::get("/ui/thread/{id}", Read, InBody, undocumented(get(pages::by_id))),
        Route::get("/ui/older", Read, InBody, undocumented(get(pages::older))),
        Route::get("/ui/live", Read, InBody, undocumented(get(live::live))),
        Route::post("/ui/send", Write, InBody, undocumented(post(actions::send))),
        Route::post("/ui/stop", Write, InBody, undocumented(post(actions::stop))),
        Route::post("/ui/answer", Write, InBody, undocumented(post(actions::answer))),
        Route::post("/ui/request", Write, InBody, undocumented(post(requests::answer))),
        Route::post("/ui/decline", Write, InBody, undocumented(post(requests::decline))),
        Route::post("/ui/fork", Write, InBody, undocumented(post(actions::fork))),
        Route::post("/ui/edit", Write, InBody, undocumented(post(actions::edit))),
        Route::post("/ui/regenerate", Write, InBody, undocumented(post(actions::regenerate))),
        Route::get("/ui/versions", Read, InBody, undocumented(get(pages::versions))),
        Route::get("/assets/{hash}/{name}", Open, NoThread, undocumented(get(assets::read))),
    ]
}
