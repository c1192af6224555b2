//! A history of Pydantic AI into an archive and back: prints what it reads, byte for byte.
//!
//! `cargo run -p loomline-interop --example round_trip history.json`, or with `--document` as a third
//! word the history as it comes back from the canonical document, with what was lost on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use loomline_interop::archive::Archive;
use loomline_interop::convert::ReadOptions;
use loomline_interop::pydantic_ai;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let path = words.next().ok_or("which file?")?;
    let text = std::fs::read_to_string(path)?;
    let options = ReadOptions::default();
    let archive = pydantic_ai::read(&text, &options)?;
    // What is stored is this text.
    let mut archive = Archive::decode(archive.encode(), &options.limits)?;
    if words.next().as_deref() == Some("--document") {
        let document = archive.to_thread();
        archive = Archive::from_thread(&document.value);
        for loss in document.losses {
            eprintln!("{}: {}", loss.pointer, loss.what);
        }
    }
    let history = pydantic_ai::write(&archive);
    for loss in history.losses {
        eprintln!("{}: {}", loss.pointer, loss.what);
    }
    print!("{}", history.value);
    Ok(())
}
