//! `SIGHUP`: what the running server does with it.

use crate::support::cli::{Home, Running};

const HASH: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";

fn serve(home: &Home, more: &[&str]) -> Running {
    let arguments = [&["serve", "--listen", "127.0.0.1:0"], more].concat();
    home.spawn(&arguments)
}

fn listens(server: &mut Running) {
    let line = server.line();
    assert!(line.contains("listening"), "{line:?}");
}

#[test]
fn the_keys_are_read_again_and_what_is_wrong_with_them_is_told_with_its_place() {
    for more in [&[] as &[&str], &["--json"]] {
        let mut home = Home::new();
        home.configure(&format!("[tenants.acme]\nkey_hashes = [\"{HASH}\"]\n"));
        let mut server = serve(&home, more);
        listens(&mut server);
        server.signal("HUP");
        server.told("the keys of the configuration were read again; there are 1");
        home.configure("[tenants.acme]\nkey_hashes = [\"nonsense\"]\n");
        server.signal("HUP");
        let told = server.told("the keys stay as they are");
        if more.is_empty() {
            server.told("because line 2, column 15: this is no key hash");
        } else {
            let told: serde_json::Value = serde_json::from_str(&told).unwrap();
            assert_eq!(told["error"], "the keys stay as they are");
            let cause = told["causes"][1].as_str().unwrap();
            assert!(
                cause.starts_with("line 2, column 15: this is no key hash"),
                "{told}"
            );
        }
    }
}

#[test]
fn a_server_without_keys_says_that_there_are_none_to_read() {
    let home = Home::new();
    let mut server = serve(&home, &[]);
    listens(&mut server);
    server.signal("HUP");
    server.told("there is no configuration, so there are no keys to read again");
}

#[test]
fn the_signal_does_not_end_a_server_that_is_still_starting() {
    let mut home = Home::new();
    // A start waits for an MCP server that says nothing.
    home.configure(&format!(
        "[tenants.acme]\nkey_hashes = [\"{HASH}\"]\n[mcp.silent]\ncommand = \"sleep\"\nargs = [\"60\"]\nconnect_timeout_s = 2\n\
         [models.s]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"s\"\ntools = [\"mcp:silent\"]\n"
    ));
    let mut server = serve(&home, &[]);
    // The store is opened right before.
    while !home.path("data").join("loomline.db").exists() {
        std::thread::yield_now();
    }
    server.signal("HUP");
    listens(&mut server);
    server.told("the keys of the configuration were read again");
}
