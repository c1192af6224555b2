//! The chain of a log, and seals that are kept outside the store.

use crate::support::cli::Home;
use serde_json::Value;

/// A private key of Ed25519 in PKCS #8 (RFC 8410): a fixed prefix and 32 bytes.
fn key() -> Vec<u8> {
    let prefix = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];
    prefix.into_iter().chain([7; 32]).collect()
}

#[test]
fn prove_prints_the_chain_of_a_thread() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let lines = home.run(&["prove", "k", "--json"]).json();
    let (end, blocks) = lines.split_last().unwrap();
    let n_events: u64 = blocks.iter().map(|it| it["events"].as_u64().unwrap()).sum();
    assert_eq!(end["tail"], n_events);
    assert_eq!(end["sum"], blocks.last().unwrap()["sum"]);
    assert!(lines.iter().all(|line| line["holds"] == true), "{lines:?}");
    let id = end["thread"].as_str().unwrap();
    assert!(home.ok(&["prove", id]).contains("the chain holds"));
    assert_eq!(home.run(&["prove", "other"]).code, 4);
}

#[test]
fn an_older_database_differs_from_its_seal() {
    let home = Home::new();
    let key_file = home.data().join("key.der");
    std::fs::write(&key_file, key()).unwrap();
    let [seal, key_file] =
        [home.data().join("seal.json"), key_file].map(|it| it.display().to_string());
    home.ok(&["run", "hello", "--thread", "k"]);
    let database = home.data().join("loomline.db");
    let older = std::fs::read(&database).unwrap();
    home.ok(&["run", "again", "--thread", "k"]);
    let made = home
        .run(&["seal", &seal, "--sign", &key_file, "--json"])
        .json();
    let signer = made[0]["public_key"].as_str().unwrap().to_owned();
    let doctor = ["doctor", "--seal", &seal, "--seal-key", &signer];
    assert!(home.ok(&doctor).contains("ok  seal: "));
    let other = "00".repeat(32);
    assert_eq!(
        home.run(&["doctor", "--seal", &seal, "--seal-key", &other])
            .code,
        1
    );

    std::fs::write(&database, older).unwrap();

    let ran = home.run(&doctor);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains("the database is older than the seal"),
        "{ran:?}"
    );
}

#[test]
fn a_changed_seal_is_refused() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let file = home.data().join("seal.json");
    let seal = file.display().to_string();
    home.ok(&["seal", &seal]);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["threads"][0]["tail"] = 1.into();
    std::fs::write(&file, value.to_string()).unwrap();
    let ran = home.run(&["doctor", "--seal", &seal]);
    assert!(
        ran.code == 1 && ran.err.contains("the digest is another"),
        "{ran:?}"
    );
}
