//! What users expect of any command line: messages, exit codes, colours, questions.

use crate::support::cli::Home;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the binary in an environment without a home.
fn homeless(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loomline"));
    for name in ["HOME", "XDG_DATA_HOME", "LOOMLINE_DATA", "LOOMLINE_CONFIG"] {
        command.env_remove(name);
    }
    command.args(arguments).output().unwrap()
}

#[test]
fn a_user_without_a_home_is_told_to_name_a_directory() {
    for arguments in [&["run", "hello"][..], &["serve"], &["threads", "list"]] {
        let ran = homeless(arguments);
        let err = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{err}");
        assert!(
            err.contains("HOME is not set") && err.contains("--data"),
            "{err}"
        );
    }
    assert!(!Path::new("loomline-data").exists());
    let doctor = homeless(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
}

#[test]
fn a_port_in_use_is_told_with_its_address_and_exit_1() {
    let home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = home.run(&["serve", "--listen", &address]);
    let expected = format!(
        "error: {address} is in use by another program; stop it, or give another address with --listen\n"
    );
    assert_eq!((ran.code, ran.err), (1, expected));
    assert!(!home.path("data").exists());
}

#[cfg(unix)]
#[test]
fn serve_listens_at_a_name_and_at_a_bare_port() {
    let home = Home::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    for (listen, expected) in [
        (
            "localhost:0".to_owned(),
            "listening on http://127.0.0.1:".to_owned(),
        ),
        (
            port.clone(),
            format!("listening on http://127.0.0.1:{port}"),
        ),
    ] {
        let mut serving = home.spawn(&["serve", "--listen", &listen]);
        let line = serving.line();
        assert!(line.starts_with(&expected), "{line}");
        serving.signal("TERM");
        assert_eq!(serving.close().code, 0);
    }
}

#[test]
fn a_name_without_an_address_is_exit_1() {
    let ran = Home::new().run(&["serve", "--listen", "no-such-host.invalid:80"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("can't find the address of no-such-host.invalid:80"),
        "{ran:?}"
    );
}

#[test]
fn a_document_with_a_byte_order_mark_is_not_valid() {
    let home = Home::new();
    let file = home.file("marked.json", "\u{feff}{}");
    let file = file.to_str().unwrap();
    for command in [&["validate", file][..], &["hash", file]] {
        let ran = home.run(command);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(ran.err.contains("begins with a byte order mark"), "{ran:?}");
    }
}

#[test]
fn a_configuration_with_a_byte_order_mark_is_read() {
    let mut home = Home::new();
    home.configure("\u{feff}[server]\nmax_depth = 100\n");
    assert!(home.ok(&["doctor"]).contains("ok  configuration"));
}

#[test]
fn a_garbage_store_is_told_to_be_none_and_exit_1() {
    let home = Home::new();
    std::fs::write(home.data().join("loomline.db"), "garbage ".repeat(1000)).unwrap();
    for command in [
        &["run", "x"][..],
        &["threads", "list"],
        &["serve", "--listen", "0"],
    ] {
        let ran = home.run(command);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(
            ran.err.contains("loomline.db can't be opened")
                && ran.err.contains("the file is not a store of loomline"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_dash_reads_the_prompt_from_standard_input() {
    let home = Home::new();
    let ran = home.feed(&["run", "-", "--thread", "k"], "compute 2*3\n");
    assert_eq!(
        (ran.code, ran.out.ends_with("compute gave 6.\n")),
        (0, true),
        "{ran:?}"
    );
    assert!(
        home.ok(&["threads", "show", "k"])
            .starts_with("user  compute 2*3\n")
    );
    let empty = home.feed(&["run", "-"], " \n");
    assert_eq!(empty.code, 2, "{empty:?}");
    assert!(empty.err.contains("standard input is empty"), "{empty:?}");
}

#[test]
fn a_quiet_run_prints_its_answer_and_its_errors_alone() {
    let home = Home::new();
    let ran = home.run(&["run", "hello", "--quiet"]);
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("You said: hello\n", "")
    );
    let failed = home.run(&["run", "fail", "-q"]);
    assert!(
        failed.err.starts_with("error: the run ended early"),
        "{failed:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_quiet_server_says_where_it_listens_alone() {
    let home = Home::new();
    let mut serving = home.spawn(&["serve", "--listen", "0", "--quiet"]);
    assert!(serving.line().starts_with("listening on http://127.0.0.1:"));
    serving.signal("TERM");
    assert_eq!(serving.line(), "");
    assert_eq!(serving.close().code, 0);
}

#[test]
fn colours_are_there_always_or_never_as_asked() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let always = home.ok(&["threads", "show", "k", "--color", "always"]);
    assert!(always.contains("\u{1b}[1muser\u{1b}[0m"), "{always:?}");
    let error = home
        .run(&["threads", "show", "no", "--color", "always"])
        .err;
    assert!(error.contains('\u{1b}'), "{error:?}");
    let never = home.in_colour(&["threads", "show", "k", "--color", "never"]);
    assert!(!never.out.contains('\u{1b}'), "{never:?}");
}

/// Runs a command on a terminal of its own, whose user types this.
#[cfg(target_os = "linux")]
fn on_terminal(home: &Home, arguments: &str, typed: &str) -> (Option<i32>, String) {
    use std::io::Write;
    use std::process::Stdio;
    let program = env!("CARGO_BIN_EXE_loomline");
    let line = format!("{program} --data {} {arguments}", home.data().display());
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[cfg(target_os = "linux")]
#[test]
fn a_deletion_is_confirmed_on_a_terminal_and_not_in_a_script() {
    let home = Home::new();
    for key in ["a", "b", "c"] {
        home.ok(&["run", "hello", "--thread", key]);
    }
    let (code, shown) = on_terminal(&home, "threads delete a", "n\n");
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("Delete thread a and everything of it? [y/N]"),
        "{shown}"
    );
    assert_eq!(home.run(&["threads", "show", "a"]).code, 0);
    let (code, shown) = on_terminal(&home, "threads delete a", "y\n");
    assert!(code == Some(0) && shown.contains("a is deleted"), "{shown}");
    let (code, shown) = on_terminal(&home, "threads delete b --yes", "");
    assert!(code == Some(0) && !shown.contains("[y/N]"), "{shown}");
    assert_eq!(home.ok(&["threads", "delete", "c"]), "c is deleted\n");
}

#[test]
fn a_run_leaves_its_store_closed() {
    let home = Home::new();
    for _ in 0..5 {
        home.ok(&["run", "hello", "--thread", "k"]);
        for left in ["loomline.db-wal", "loomline.db-shm"] {
            assert!(!home.data().join(left).exists(), "{left}");
        }
    }
}

fn documentation(below: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documentation(&path, files);
        } else if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
}

#[test]
fn code_examples_have_only_characters_that_shells_python_and_node_accept() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    documentation(&root.join("docs"), &mut files);
    let languages = ["sh", "bash", "python", "js", "ts", "tsx", "toml", "rust"];
    let (mut n_lines, mut wrong) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut language = None;
        for (at, line) in text.lines().enumerate() {
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                let fence = fence.split([',', ' ']).next();
                language = if language.is_some() { None } else { fence };
            } else if language.is_some_and(|it| languages.contains(&it)) {
                n_lines += 1;
                if !line.is_ascii() {
                    wrong.push(format!("{}:{}: {line}", file.display(), at + 1));
                }
            }
        }
    }
    assert!(n_lines > 200, "{n_lines}");
    assert_eq!(wrong, [""; 0]);
}
