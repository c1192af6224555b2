//! A store that is encrypted, as an operator meets it.

use crate::support::cli::Home;

#[cfg(feature = "encryption")]
const CONFIGURED: &str = "[store]\nkey_env = \"KEY\"\n";

/// A key as the program makes them.
fn key(home: &Home) -> String {
    let made = &home.run(&["key", "--store", "--json"]).json()[0];
    made["key"].as_str().unwrap().to_owned()
}

/// A home whose store is encrypted with the key in `KEY`.
#[cfg(feature = "encryption")]
fn encrypted() -> Home {
    let mut home = Home::new();
    let key = key(&home);
    home.set("KEY", &key);
    home.configure(CONFIGURED);
    home
}

/// A command that fails by exit code 1, and what it says.
#[cfg(feature = "encryption")]
fn refused(home: &Home, arguments: &[&str]) -> String {
    let ran = home.run(arguments);
    assert_eq!(ran.code, 1, "{arguments:?}: {ran:?}");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    ran.err
}

#[test]
fn a_key_for_the_store_is_made_anew_each_time() {
    let home = Home::new();
    let text = home.ok(&["key", "--store"]);
    assert!(text.contains("[store]\nkey_env = "), "{text}");
    let keys = [key(&home), key(&home)];
    assert!(keys.iter().all(|key| key.len() == 64), "{keys:?}");
    assert_ne!(keys[0], keys[1]);
}

#[cfg(feature = "encryption")]
mod supported {
    use super::{CONFIGURED, encrypted, key, refused};
    use crate::support::cli::Home;
    use serde_json::json;

    const SAID: &str = "what nobody else is to read";

    /// Whether a file of the data has what was said.
    fn is_told(home: &Home) -> bool {
        let files = std::fs::read_dir(home.data()).unwrap();
        files.map(|file| file.unwrap().path()).any(|path| {
            let bytes = if path.is_file() {
                std::fs::read(path).unwrap()
            } else {
                Vec::new()
            };
            bytes
                .windows(SAID.len())
                .any(|window| window == SAID.as_bytes())
        })
    }

    #[test]
    fn what_is_said_is_encrypted_on_the_disk_and_survives_the_process() {
        let home = encrypted();
        home.ok(&["run", SAID, "--thread", "private"]);
        assert!(!is_told(&home));
        let doctor = home.ok(&["doctor"]);
        assert!(doctor.contains("ok  store opens, encrypted"), "{doctor}");

        let mut server = home.server();
        let said = json!({"content": format!("slow say 20 words. {SAID}")});
        server
            .post("/api/v1/threads/private/messages", &said)
            .unwrap();
        server.kill();
        assert!(!is_told(&home));
        let server = home.server();
        server.rest("private");
        drop(server);
        let document = home.ok(&["export", "--thread", "private"]);
        let prompt = format!("\"content\":\"slow say 20 words. {SAID}\"");
        assert_eq!(document.matches(&prompt).count(), 1, "{document}");
        assert_eq!(
            document
                .matches("\"completion_status\":\"complete\"")
                .count(),
            2
        );
        assert!(!is_told(&home));

        let plain = Home::new();
        plain.ok(&["run", SAID]);
        assert!(is_told(&plain));
    }

    #[test]
    fn a_store_is_not_opened_without_its_key() {
        let mut home = encrypted();
        home.ok(&["run", SAID, "--thread", "private"]);
        let other = key(&home);
        home.set("KEY", &other);
        for arguments in [&["run", "hello"][..], &["threads", "list"]] {
            let said = refused(&home, arguments);
            assert!(said.contains("encrypted with another key"), "{said}");
            assert!(!said.contains(&other), "{said}");
        }
        home.configure("");
        let said = refused(&home, &["export", "--thread", "private"]);
        assert!(said.contains("set `[store] key_env`"), "{said}");
        home.configure("[store]\nkey_env = \"GONE\"\n");
        let said = refused(&home, &["serve", "--listen", "127.0.0.1:0"]);
        assert!(said.contains("the environment has no GONE"), "{said}");
        assert_eq!(home.run(&["doctor"]).code, 1);
    }

    #[test]
    fn a_store_is_encrypted_given_another_key_and_decrypted() {
        let mut home = Home::new();
        home.ok(&["run", SAID, "--thread", "private"]);
        let document = home.ok(&["export", "--thread", "private"]);
        let (one, other) = (key(&home), key(&home));
        home.set("KEY", &one);
        home.set("OTHER", &other);

        let said = home.ok(&["rekey", "--new-key-env", "KEY"]);
        assert!(said.contains(CONFIGURED.trim_end()), "{said}");
        assert!(!is_told(&home));
        assert!(refused(&home, &["threads", "list"]).contains("or it is encrypted"));
        home.configure(CONFIGURED);
        assert_eq!(home.ok(&["export", "--thread", "private"]), document);

        let told = home
            .run(&["rekey", "--new-key-env", "OTHER", "--json"])
            .json();
        assert_eq!(told, [json!({"encrypted": true, "left": []})]);
        assert!(refused(&home, &["threads", "list"]).contains("another key"));
        home.set("KEY", &other);
        assert_eq!(home.ok(&["export", "--thread", "private"]), document);

        home.ok(&["rekey", "--decrypt"]);
        assert!(is_told(&home));
        assert!(refused(&home, &["threads", "list"]).contains("is not encrypted"));
        home.configure("");
        assert_eq!(home.ok(&["export", "--thread", "private"]), document);
    }

    #[test]
    fn a_key_is_not_changed_where_that_can_not_be() {
        let mut home = encrypted();
        let rekey = ["rekey", "--new-key-env", "OTHER"];
        let said = refused(&home, &rekey);
        assert!(
            said.contains("OTHER has no key") && said.contains("64 hexadecimal"),
            "{said}"
        );
        home.set("OTHER", &key(&home));
        assert_eq!(home.run(&rekey).code, 4, "there is no store yet");

        let server = home.server();
        let said = refused(&home, &rekey);
        assert!(said.contains("another process serves this store"), "{said}");
        drop(server);

        home.ok(&["run", SAID, "--thread", "private"]);
        let mut tail = home.spawn(&["tail", "private"]);
        assert!(!tail.line().is_empty());
        let said = refused(&home, &rekey);
        assert!(said.contains("another process"), "{said}");
        drop(tail);
        home.ok(&rekey);
    }

    #[test]
    fn an_encrypted_store_is_backed_up_and_restored_encrypted() {
        let mut home = encrypted();
        home.ok(&["run", SAID, "--thread", "private"]);
        let (backups, to) = (home.path("backups"), home.path("restored"));
        let (backups, to) = (backups.to_str().unwrap(), to.to_str().unwrap());
        home.ok(&["backup", backups]);
        home.ok(&["backup", backups]);
        home.ok(&["backup", "--verify", backups]);
        for file in std::fs::read_dir(backups).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            let mut windows = bytes.windows(SAID.len());
            assert!(windows.all(|window| window != SAID.as_bytes()));
        }
        home.ok(&["restore", backups, "--to", to]);
        let threads = home.ok_at(&home.path("restored"), &["threads", "list"]);
        assert!(threads.contains("private"), "{threads}");
        let other = key(&home);
        home.set("KEY", &other);
        let elsewhere = home.path("elsewhere");
        refused(
            &home,
            &["restore", backups, "--to", elsewhere.to_str().unwrap()],
        );
        assert!(!elsewhere.join("loomline.db").exists());
    }
}
